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

/** A command with the button that copies it. @param {string} command */
export const commandLine = (command) => el("div.tools.command", {}, el("code", {}, command), el("button.small", { type: "button", onclick: () => copied(command) }, "Copy"));

/** A text as one word of a shell. @param {string} text */
export const quote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
