// @ts-check
/** Questions before a change, and what a page that only reads says instead of making one. */

import { commandLine } from "./copying.js";
import { el } from "./page.js";

/** @typedef {import("./page.js").Child} Child */

/**
 * Ask in a dialog.
 * @param {string} title @param {Child[]} content @param {[string, string][]} choices value and text of each button
 * @returns {Promise<string>} value of the pressed button; "" where the dialog was closed
 */
export function ask(title, content, choices) {
  const buttons = choices.map(([value, text], index) => el(index ? "button" : "button.primary", { value }, text));
  const box = /** @type {HTMLDialogElement} */ (el("dialog.asking", { "aria-label": title }, el("h2", {}, title), ...content,
    el("form.tools", { method: "dialog" }, buttons, el("button", { value: "" }, choices.length ? "Cancel" : "Close"))));
  document.body.append(box);
  box.showModal();
  return new Promise((answered) => box.addEventListener("close", () => {
    box.remove();
    answered(box.returnValue);
  }));
}

/** Say how a change is made where the page only reads. @param {string} title @param {...Child} others further ways */
export const sayReadOnly = (title, ...others) => ask(title, [el("p", {}, "This page only reads. One that may change the archive is started by:"), commandLine("archive dashboard --write"), ...others], []);
