// @ts-check
/** Note and tags of a study or a network, which a page that may write can edit. */

import { change, el, fill, mayWrite } from "./page.js";

/**
 * @param {Record<string, string>} owner `study` or `network` with its name
 * @param {string} note
 * @param {string[]} tags
 * @returns {{ element: HTMLElement, update: (note: string, tags: string[]) => void }} `update` shows a note of another user
 */
export function noteOf(owner, note, tags) {
  const place = el("div.note");
  const show = () => fill(place, tags.map((tag) => el("span.tag", {}, tag)), note && el("p.text", {}, note),
    mayWrite && el("button.small", { type: "button", onclick: edit }, note || tags.length ? "Edit the note" : "Add a note or tags"));
  const edit = () => {
    const seen = { note, tags };
    const text = /** @type {HTMLTextAreaElement} */ (el("textarea", { "aria-label": "Note", maxlength: 10000 }, note));
    const words = /** @type {HTMLInputElement} */ (el("input", { "aria-label": "Tags, separated by commas", placeholder: "tags, separated by commas", value: tags.join(", "), size: 40 }));
    fill(place, el("form", { onsubmit: async (/** @type {Event} */ event) => {
      event.preventDefault();
      const done = await change("Saved.", "annotate", { ...owner, note: text.value, tags: words.value.split(","), seen });
      if (!done) return;
      [note, tags] = [done.note, done.tags];
      show();
    } }, text, el("div.tools", {}, words, el("button.primary", {}, "Save"), el("button", { type: "button", onclick: show }, "Cancel"))));
    text.focus();
  };
  show();
  const update = (/** @type {string} */ text, /** @type {string[]} */ words) => {
    if (text === note && String(words) === String(tags)) return;
    [note, tags] = [text, words];
    // What a user is writing stays; the server refuses it in place of a note that was not seen.
    if (!place.querySelector("form")) show();
  };
  return { element: place, update };
}
