// @ts-check
/** The keyboard's focus, which news must not move: it stays on its control where a part of the page is made again. */

import { fill } from "./page.js";

/** @typedef {import("./page.js").Child} Child */

/** @param {Element} element @returns {HTMLElement[]} */
export const controlsOf = (element) => [...element.querySelectorAll("a, button, input, select, summary, textarea")].map((each) => /** @type {HTMLElement} */ (each));

/** Replace the children of an element; the focus stays on the control at its place. @param {Element} element @param {...(Child | Child[])} children */
export function refill(element, ...children) {
  const place = controlsOf(element).indexOf(/** @type {HTMLElement} */ (document.activeElement));
  fill(element, ...children);
  if (place >= 0) controlsOf(element)[place]?.focus({ preventScroll: true });
}

/** What the controls of an element offer. @type {WeakMap<Element, string>} */
const offered = new WeakMap();

/**
 * Fill an element with controls, which are made again only when they offer something else: an open list would close.
 * @param {Element} element @param {any} options @param {() => (Child | Child[])[]} make
 */
export function offer(element, options, make) {
  const text = JSON.stringify(options);
  if (offered.get(element) === text) return;
  offered.set(element, text);
  refill(element, ...make());
}
