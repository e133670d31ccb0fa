// @ts-check
/** Objectives of a study with several: the best of each, the Pareto set, and its hypervolume over time. */

import { offer } from "../parts/focus.js";
import { address, api, carry, choice, el, failed, fill, networkAnchor, number, section, settings, studyPath } from "../parts/page.js";
import { Scatter } from "../parts/scatter.js";
import { Table } from "../parts/table.js";
import { whenSeen } from "../parts/timing.js";
import { name, openNumber, study } from "./state.js";

/** The last answer: others first, so that the Pareto set is drawn above them. @type {any} */
let found = null;
/** @type {any[]} */
let results = [];

const tools = el("div.tools");
const summary = el("p.quiet", {}, "Loading …");
const growth = new Scatter("Hypervolume of the Pareto set", {
  describe: (at) => [el("b", {}, `#${found.history[at][0]}`), el("div", {}, `hypervolume ${number(found.history[at][1])}`)],
  open: (at) => openNumber(found.history[at][0]), height: 220,
});
const front = new Scatter("Results in two objectives, with the Pareto set", { describe, open: (at) => openNumber(results[at].number) });

const best = new Table([
  { name: "objective", cell: (row) => `${row.name} (${row.direction})` },
  { name: "value", title: "best", numeric: true, cell: (row) => el("b", {}, number(row.value)) },
  { name: "number", title: "#", numeric: true, cell: (row) => el("button.small", { type: "button", onclick: () => openNumber(row.number) }, `#${row.number}`) },
  { name: "architecture", title: "network", cell: (row) => networkAnchor(row.architecture) },
  { name: "configuration", title: "", cell: (row) => settings(row.configuration) },
], { empty: "no result with all objectives" });

export const objectivesCard = section("Objectives", best.element, summary);
export const paretoCard = section("Pareto set", tools, front.element);
export const growthCard = section("Hypervolume", growth.element);

const refresh = whenSeen(objectivesCard, load, 5000);
const drawFront = whenSeen(paretoCard, showFront, 0);
const drawGrowth = whenSeen(growthCard, showGrowth, 0);

/** Show the cards of a study with several objectives, when they are in sight. */
export function refreshObjectives() {
  const several = study.points.about.objectives.length > 1;
  objectivesCard.hidden = !several;
  paretoCard.hidden = growthCard.hidden = !several || !found?.front;
  if (several) refresh();
}

async function load() {
  try {
    found = await api(studyPath(name, "objectives"));
  } catch (error) {
    return failed(summary, error);
  }
  paretoCard.hidden = growthCard.hidden = !found.front;
  best.show(found.front ? found.objectives.map((/** @type {any} */ each, /** @type {number} */ at) => (
    { ...each.best, name: each.name, direction: each.direction, objective: each.name, value: each.best.values[at] })) : []);
  fill(summary, found.front && [`${found.front.length} of ${found.results} results are in the Pareto set. `, "Hypervolume ", el("b", { id: "hypervolume" }, number(found.hypervolume)),
    `, from the worst value of each objective: ${found.reference.map(number).join(", ")}.`, found.left_out > 0 && ` ${found.left_out} results lack an objective.`]);
  if (!found.front) return;
  results = [...found.others, ...found.front];
  drawFront(true);
  drawGrowth(true);
}

function showFront() {
  if (!found?.front) return;
  const further = found.objectives.slice(1).map((/** @type {any} */ each) => each.name);
  const chosen = further.includes(address.get("objective")) ? address.get("objective") : further[0];
  const across = 1 + further.indexOf(chosen);
  offer(tools, further, () => [further.length > 1 && choice("against", further.map((/** @type {string} */ each) => [each, each]), chosen, (objective) => { carry({ objective }); showFront(); }),
    el("span.legend", {}, el("span", {}, el("i.swatch-best"), "Pareto set"))]);
  const others = found.others.length;
  const x = results.map((each) => each.values[across]);
  const order = found.front.map((/** @type {any} */ _, /** @type {number} */ at) => others + at).sort((/** @type {number} */ one, /** @type {number} */ two) => x[one] - x[two]);
  // With three objectives the set is no line in two of them.
  const lines = further.length > 1 ? [] : [{ points: order, kind: "--best", step: found.objectives[across].direction === "minimise" }];
  front.show({ x, y: results.map((each) => each.values[0]), kind: results.map((_, at) => Number(at >= others)), shown: results.map(() => 1),
    palette: ["--grey", "--best"], xTitle: title(across), yTitle: title(0), lines });
}

function showGrowth() {
  if (!found?.front) return;
  const steps = found.history.map((/** @type {any} */ _, /** @type {number} */ at) => at);
  growth.show({ x: found.history.map((/** @type {any} */ each) => each[2]), y: found.history.map((/** @type {any} */ each) => each[1]), kind: steps.map(() => 0),
    shown: steps.map(() => 1), xTitle: "evaluations", whole: true, yTitle: "hypervolume", lines: [{ points: steps, kind: "--best", step: true }] });
}

/** @param {number} at */
const title = (at) => `${found.objectives[at].name} (${found.objectives[at].direction})`;

/** @param {number} at */
function describe(at) {
  return [el("b", {}, `#${results[at].number}`), ...found.objectives.map((/** @type {any} */ each, /** @type {number} */ place) => el("div", {}, `${each.name} ${number(results[at].values[place])}`))];
}
