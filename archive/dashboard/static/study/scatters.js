// @ts-check
/** Scatter plots of a study's results: progress, value against cost with the front, predicted and observed. */

import { offer } from "../parts/focus.js";
import { address, carry, choice, el, fill, number, section } from "../parts/page.js";
import { improvements, objectiveColumn } from "../parts/points.js";
import { COLOURS, Scatter } from "../parts/scatter.js";
import { whenSeen } from "../parts/timing.js";
import { openNumber, sign, signed, study } from "./state.js";

const AXES = { number: "evaluations", finished: "time", spent: "seconds of training, summed", epochs_spent: "epochs, summed" };
const COSTS = { params: "parameters", flops: "multiply-adds", latency_ms: "latency (ms)", peak_memory_bytes: "peak memory (bytes)",
  seconds: "seconds of training", epochs: "epochs" };

const open = (/** @type {number} */ at) => openNumber(study.points.columns.number[at]);
const legend = el("p.legend");
const progress = new Scatter("Value of each evaluation, with the best so far", { describe, open });
const front = new Scatter("Value against cost, with the front", { describe, open });
const predicted = new Scatter("Observed against predicted value", { describe, open });
const frontTools = el("div.tools");
const objectiveTools = el("span");

export const progressCard = section("Progress", el("div.tools", {},
  choice("against", Object.entries(AXES), address.get("x") ?? "number", (x) => { carry({ x: x === "number" ? null : x }); showProgress(); }), objectiveTools, legend),
progress.element);
export const frontCard = section("Value against cost", frontTools, front.element);
export const predictedCard = section("Predicted and observed", predicted.element);

const refreshing = [whenSeen(progressCard, showProgress, 0), whenSeen(frontCard, showFront, 0), whenSeen(predictedCard, showPredicted, 0)];

/** Show the plots that are in sight, each in a frame of its own, and the others when they are. */
export function showScatters() {
  showLegend();
  frontCard.hidden = !costs().length;
  predictedCard.hidden = !study.points.has("mean");
  for (const refresh of refreshing) refresh();
}

const costs = () => Object.entries(COSTS).filter(([column]) => study.points.has(column));

/** @param {number} at */
function describe(at) {
  const { points } = study;
  const value = (/** @type {string} */ column) => points.columns[column][at];
  const lines = [`#${value("number")}  ${points.about.objective} ${number(value("value"))}`, points.agents[value("agent")] ?? ""];
  for (const [place, { name }] of points.about.objectives.entries()) {
    if (place) lines.push(`${name} ${number(value(objectiveColumn(place)))}`);
  }
  for (const [column, title] of Object.entries(COSTS)) {
    if (value(column) === value(column)) lines.push(`${title}: ${number(value(column))}`);
  }
  if (value("mean") === value("mean")) lines.push(`predicted: ${number(signed(value("mean")))} ± ${number(value("std"))}`);
  return lines.filter(Boolean).map((line, place) => el(place ? "div" : "b", {}, line));
}

function showLegend() {
  const used = study.points.agents.slice(0, COLOURS.length);
  fill(legend, used.length > 1 ? used.map((agent, at) => el("span", {}, el(`i.swatch-${at}`), agent)) : null);
}

function showProgress() {
  const { points } = study;
  const by = address.get("x") ?? "number";
  const { objectives } = points.about;
  const place = Math.max(0, objectives.findIndex((/** @type {any} */ each) => each.name === address.get("progress")));
  offer(objectiveTools, objectives, () => [objectives.length > 1 && choice("objective", objectives.map((/** @type {any} */ each) => [each.name, `${each.name} (${each.direction})`]),
    objectives[place].name, (name) => { carry({ progress: name === objectives[0].name ? null : name }); showProgress(); })]);
  const y = points.column(objectiveColumn(place));
  const whole = points.comparable().map((each, at) => Number(each && Number.isFinite(y[at])));
  const x = by === "spent" ? points.spent("seconds") : by === "epochs_spent" ? points.spent("epochs") : by === "finished" ? points.column("finished") : points.spent(null);
  const shown = y.map((/** @type {number} */ value, /** @type {number} */ at) => Number(Number.isFinite(value) && x[at] === x[at]));
  progress.show({ x, y, kind: points.column("agent"), shown, xTitle: AXES[/** @type {"number"} */ (by)], yTitle: objectives[place].name,
    time: by === "finished", lines: [{ points: improvements(x, y, whole, objectives[place].direction === "minimise" ? -1 : 1), kind: "--best", step: true }] });
}

function showFront() {
  const { points } = study;
  const known = costs();
  if (!known.length) return;
  const chosen = known.find(([column]) => column === address.get("cost")) ?? known[0];
  const log = (address.get("log") ?? "yes") === "yes";
  offer(frontTools, known, () => [choice("cost", known, chosen[0], (cost) => { carry({ cost }); showFront(); }), logarithmic(log)]);
  const [x, y] = [points.column(chosen[0]), points.column("value")];
  // A result that reuses another one took no training.
  const reused = chosen[0] === "seconds" ? points.column("reused") : null;
  const shown = points.comparable().map((each, at) => Number(each && Number.isFinite(x[at]) && !reused?.[at]));
  front.show({ x, y, kind: points.column("agent"), shown, xTitle: chosen[1], yTitle: points.about.objective, log,
    lines: [{ points: improvements(x, y, shown, sign()), kind: "--best", step: true }] });
}

/** @param {boolean} checked */
function logarithmic(checked) {
  const box = /** @type {HTMLInputElement} */ (el("input", { type: "checkbox", checked, onchange: () => { carry({ log: box.checked ? null : "no" }); showFront(); } }));
  return el("label.choice", {}, box, " logarithmic");
}

function showPredicted() {
  const { points } = study;
  if (!points.has("mean")) return;
  const whole = points.comparable();
  const mean = points.column("mean");
  const x = sign() > 0 ? mean : mean.map((/** @type {number} */ value) => -value);
  predicted.show({ x, y: points.column("value"), kind: points.column("agent"), shown: whole, xTitle: "predicted", yTitle: "observed", diagonal: true });
}
