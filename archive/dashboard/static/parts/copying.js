// @ts-check
/** Texts for the clipboard, which a page has only on a safe address. */

import { el, toast } from "./page.js";

/** Copy a text; where that is refused, show it to be copied by hand. @param {string} text */
export async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied.");
  } catch {
    const box = /** @type {HTMLTextAreaElement} */ (el("textarea", { readonly: true, "aria-label": "Text to copy" }, text));
    const dialog = /** @type {HTMLDialogElement} */ (el("dialog", {}, box, el("form", { method: "dialog" }, el("button", {}, "Close"))));
    document.body.append(dialog);
    dialog.addEventListener("close", () => dialog.remove());
    dialog.showModal();
    box.select();
  }
}
