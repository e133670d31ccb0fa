// @ts-check
/** Elements of drawings in the page; their colours are classes of style.css, which follow the theme. */

import { visible } from "./page.js";

/**
 * Return a new SVG element.
 * @param {string} name tag, with classes after dots: "path.line"
 * @param {Record<string, any>} [attributes] attributes; functions are listeners (`onclick`)
 * @param {...(Node | string)} children
 * @returns {SVGElement}
 */
export function svg(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(key, String(value));
  }
  element.append(...children.map((child) => (typeof child === "string" ? visible(child) : child)));
  return element;
}

/** A text that is cut to a number of characters, whole as a title. @param {string} text @param {number} longest */
export const cut = (text, longest) => (text.length > longest ? `${text.slice(0, longest - 1)}…` : text);
