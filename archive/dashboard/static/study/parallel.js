// @ts-check
/** Hyperparameters and decisions of a study's results, or sizes of its networks, beside the value. */

import { refill } from "../parts/focus.js";
import { address, api, carry, el, failed, fill, section, studyPath } from "../parts/page.js";
import { ParallelView } from "../parts/parallel.js";
import { whenSeen } from "../parts/timing.js";
import { name, openNumber } from "./state.js";

const MANY = 12;
const KINDS = { hyperparameter: "hyperparameters", decision: "decisions", size: "sizes of networks" };

const note = el("p.quiet", {}, "Loading …");
const axes = el("details", { hidden: true });
const legend = el("p.legend", {}, el("span", {}, el("i.swatch-g6"), "best"), el("span", {}, el("i.swatch-g3"), "middle"), el("span", {}, el("i.swatch-g0"), "worst"));
const plot = new ParallelView("One line a result", { open: openNumber, ranged, ranges: ranges() });

const title = el("span", {}, "What differs");
const card = section(title, legend, plot.element, note, axes);
card.hidden = true;
/** The card is absent where nothing differs; its place is there, so that it can be seen. */
export const parallelPart = el("div", {}, card);
export const refreshParallel = whenSeen(parallelPart, load, 10_000);

/** Chosen ranges of axes, as the address has them: LOW:HIGH:NAME. @returns {import("../parts/parallel.js").Ranges} */
function ranges() {
  const found = address.getAll("range").map((text) => /^([\d.]+):([\d.]+):(.+)$/.exec(text));
  return Object.fromEntries(found.flatMap((match) => (match ? [[match[3], [Number(match[1]), Number(match[2])]]] : [])));
}

/** @param {import("../parts/parallel.js").Ranges} chosen */
function ranged(chosen) {
  address.delete("range");
  for (const [axis, [low, high]] of Object.entries(chosen)) address.append("range", `${low.toFixed(3)}:${high.toFixed(3)}:${axis}`);
  carry({});
}

async function load() {
  const query = new URLSearchParams([["study", name], ...address.getAll("axis").map((axis) => ["axis", axis])]);
  try {
    const found = await api(`${studyPath(name, "parallel").split("?")[0]}?${query}`);
    card.hidden = Boolean(found.nothing);
    if (found.nothing) return;
    plot.element.hidden = legend.hidden = axes.hidden = false;
    plot.show(found);
    fill(title, titleOf(found.axes));
    plot.picture.setAttribute("aria-label", `${titleOf(found.axes)} beside the value, one line a result`);
    fill(note, found.number.length < found.results ? `${found.number.length} of ${found.results} results: the best, and others in even steps. ` : `${found.results} results. `,
      "Drag along an axis to choose a range; click on it to remove the range.");
    showAxes(found);
  } catch (error) {
    plot.element.hidden = legend.hidden = true;
    return failed(note, error);
  }
}

/** What the axes show, in the order of the axes. @param {{ kind: string }[]} shown */
function titleOf(shown) {
  const kinds = [...new Set(shown.map((axis) => axis.kind))].filter((kind) => Object.hasOwn(KINDS, kind));
  const text = kinds.map((kind) => KINDS[/** @type {keyof typeof KINDS} */ (kind)]).join(" and ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** @param {any} found */
function showAxes(found) {
  const shown = found.axes.slice(0, -1).map((/** @type {any} */ axis) => axis.name);
  const boxes = found.known.map((/** @type {string} */ each) => {
    const box = /** @type {HTMLInputElement} */ (el("input", { type: "checkbox", value: each, checked: shown.includes(each), disabled: !shown.includes(each) && shown.length >= MANY,
      onchange: () => {
        const kept = shown.filter((/** @type {string} */ other) => other !== each);
        choose(box.checked ? [...kept, each] : kept);
      } }));
    return el("label", {}, box, ` ${each}`);
  });
  // Replaced in place, so that the list stays open.
  refill(axes, el("summary", {}, `Axes: ${shown.length} of ${found.known.length}`), el("div.checks", {}, boxes),
    address.has("axis") && el("button.small", { type: "button", onclick: () => choose([]) }, "Usual axes"));
}

/** @param {string[]} names */
function choose(names) {
  address.delete("axis");
  for (const each of names) address.append("axis", each);
  carry({});
  refreshParallel(true);
}
