// @ts-check
/** A difference of source files: its lines by file, each with its sign, coloured. */

import { el } from "./page.js";

/** Lines up to which all files are open at first. */
const FEW = 400;
const SIGNS = { added: "+", removed: "−", same: " ", place: "", note: "" };

/**
 * @typedef {{ path: string, added: number, removed: number, lines: [keyof SIGNS, string][], left_out: number }} FileDifference as in archive/runs/texts/difference_files.py
 */

/** @param {FileDifference[]} files @param {number} [further] files that the server has left out @returns {HTMLElement} */
export function differenceOf(files, further = 0) {
  const lines = files.reduce((sum, file) => sum + file.lines.length, 0);
  return el("div.difference", {}, files.map((file) => fileOf(file, lines <= FEW || files.length === 1)),
    further > 0 && el("p.quiet", {}, `${further} further files`));
}

/** @param {FileDifference} file @param {boolean} open */
function fileOf(file, open) {
  const box = /** @type {HTMLDetailsElement} */ (el("details", { open }, el("summary", {}, el("code", {}, file.path || "difference"), " ",
    el("b.gain", {}, `+${file.added}`), " ", el("b.loss", {}, `−${file.removed}`))));
  // Lines that are not in sight are not made.
  const fill = () => {
    if (box.open && box.children.length === 1) box.append(linesOf(file));
  };
  box.addEventListener("toggle", fill);
  fill();
  return box;
}

/** @param {FileDifference} file */
function linesOf(file) {
  return el("pre.lines", { tabindex: 0, role: "group", "aria-label": `Lines of ${file.path || "the difference"}` },
    file.lines.map(([kind, text]) => el(`span.${kind}`, {}, SIGNS[kind] ? el("i", {}, SIGNS[kind]) : null, text, "\n")),
    file.left_out > 0 && el("span.note", {}, `${file.left_out} further lines`));
}
