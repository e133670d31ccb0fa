// @ts-check
/** Hyperparameters of a study's results, or sizes of its networks, beside the value. */

import { refill } from "../parts/focus.js";
import { address, api, carry, el, failed, fill, section, studyPath } from "../parts/page.js";
import { ParallelView } from "../parts/parallel.js";
import { whenSeen } from "../parts/timing.js";
import { name, openNumber } from "./state.js";

const MANY = 12;

const note = el("p.quiet", {}, "Loading …");
const axes = el("details", { hidden: true });
const legend = el("p.legend", {}, el("span", {}, el("i.swatch-g6"), "best"), el("span", {}, el("i.swatch-g3")), el("span", {}, el("i.swatch-g0"), "worst"));
const plot = new ParallelView("Hyperparameters beside the value, one line a result", { open: openNumber, ranged, ranges: ranges() });

export const parallelCard = section("Hyperparameters", legend, plot.element, note, axes);
export const refreshParallel = whenSeen(parallelCard, load, 10_000);

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
    plot.element.hidden = legend.hidden = axes.hidden = Boolean(found.nothing);
    if (found.nothing) {
      fill(note, found.nothing);
      return;
    }
    plot.show(found);
    fill(note, found.number.length < found.results ? `${found.number.length} of ${found.results} results: the best, and others in even steps. ` : `${found.results} results. `,
      "Drag along an axis to choose a range; click on it to remove the range.");
    showAxes(found);
  } catch (error) {
    plot.element.hidden = legend.hidden = true;
    return failed(note, error);
  }
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
