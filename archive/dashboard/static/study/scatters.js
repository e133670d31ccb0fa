// @ts-check
/** Scatter plots of a study's results: progress, value against cost with the front, predicted and observed. */

import { regretScale } from "../parts/axes.js";
import { offer } from "../parts/focus.js";
import { address, carry, choice, el, fill, number, pick, section, tick } from "../parts/page.js";
import { improvements, objectiveColumn } from "../parts/points.js";
import { COLOURS, Scatter } from "../parts/scatter.js";
import { cut } from "../parts/svg.js";
import { whenSeen } from "../parts/timing.js";
import { openNumber, sign, signed, study } from "./state.js";

const AXES = { number: "evaluations", finished: "time", spent: "training time", epochs_spent: "epochs" };
/** Columns without which an axis has no numbers. */
const COLUMNS = { spent: "seconds", epochs_spent: "epochs", finished: "finished" };
const COSTS = { params: "parameters", flops: "multiply-adds", latency_ms: "latency (ms)", peak_memory_bytes: "peak memory (bytes)",
  seconds: "seconds of training", epochs: "epochs" };

const open = (/** @type {number} */ at) => openNumber(study.points.columns.number[at]);
const legend = el("p.legend");
const progress = new Scatter("Value of each evaluation, with the best so far", { describe, open });
const front = new Scatter("Value against cost, with the front", { describe, open });
const predicted = new Scatter("Observed against predicted value", { describe, open });
const frontTools = el("div.tools");
const objectiveTools = el("span");

const marks = el("p.legend");
const axisTools = el("span");
export const progressCard = section("Progress", el("p.quiet.soon", {}, "The first result begins the line of the best one here."), el("div.tools", {},
  pick("scale", [["gains", "late gains"], ["values", "values"]], address.get("scale") ?? "gains", (scale) => { carry({ scale: scale === "gains" ? null : scale }); showProgress(); showFront(); }),
  axisTools, objectiveTools),
progress.element, marks, legend);
export const frontCard = section("Value against cost", frontTools, front.element);
export const predictedCard = section("Predicted and observed", predicted.element);

const refreshing = [whenSeen(progressCard, showProgress, 0), whenSeen(frontCard, showFront, 0), whenSeen(predictedCard, showPredicted, 0)];

/** Show the plots that are in sight, each in a frame of its own, and the others when they are. */
export function showScatters() {
  showLegend();
  const without = !study.points.has("value");
  // A study that waits for its first result keeps the place of what that result draws.
  const { running, waiting } = study.points.about.counts;
  progressCard.hidden = without && !running && !waiting;
  progressCard.classList.toggle("pending", without);
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

/** Units of times: the largest of which there are two. */
const UNITS = /** @type {[number, string][]} */ ([[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]]);

/** Seconds in their usual unit. @param {ArrayLike<number>} times @returns {[number[], string]} */
function inUnit(times) {
  const values = Array.from(times);
  const most = values.reduce((largest, time) => (time > largest && time < Infinity ? time : largest), 0);
  const [size, unit] = UNITS.find(([each]) => most >= 2 * each) ?? [1, "s"];
  return [values.map((time) => time / size), unit];
}

/** @param {string} by @returns {[ArrayLike<number>, string]} */
function across(by) {
  const { points } = study;
  if (by === "finished") {
    const [x, unit] = inUnit(points.column("finished").map((/** @type {number} */ time) => (time - points.about.created) / 1000));
    return [x, `time since the start (${unit})`];
  }
  if (by === "spent") {
    const [x, unit] = inUnit(points.spent("seconds"));
    return [x, `training time, summed (${unit})`];
  }
  return by === "epochs_spent" ? [points.spent("epochs"), "epochs, summed"] : [points.spent(null), "evaluations"];
}

function showProgress() {
  const { points } = study;
  const { objectives } = points.about;
  const place = Math.max(0, objectives.findIndex((/** @type {any} */ each) => each.name === address.get("progress")));
  offer(objectiveTools, objectives, () => [objectives.length > 1 && choice("objective", objectives.map((/** @type {any} */ each) => [each.name, `${each.name} (${each.direction})`]),
    objectives[place].name, (name) => { carry({ progress: name === objectives[0].name ? null : name }); showProgress(); })]);
  const axes = Object.entries(AXES).filter(([axis]) => points.has(COLUMNS[/** @type {"spent"} */ (axis)] ?? "number"));
  offer(axisTools, axes, () => [pick("against", axes, address.get("x") ?? "number", (x) => { carry({ x: x === "number" ? null : x }); showProgress(); })]);
  const values = points.column(objectiveColumn(place));
  const whole = points.comparable().map((each, at) => Number(each && Number.isFinite(values[at])));
  const [x, xTitle] = across(address.get("x") ?? "number");
  const better = objectives[place].direction === "minimise" ? -1 : 1;
  const shown = values.map((/** @type {number} */ value, /** @type {number} */ at) => Number(Number.isFinite(value) && x[at] === x[at]));
  const best = improvements(x, values, whole, better);
  const scale = (address.get("scale") ?? "gains") === "gains" ? regretOf(values, shown, best, better) : null;
  // Better than the best are results of a part of the training only: they stand at its place.
  const y = scale ? values.map(scale.place) : values;
  const [pruned, failed] = ["PRUNED", "FAILED"].map((state) => points.states.indexOf(state));
  const state = points.column("state");
  // Passes over a hundred thousand results take milliseconds.
  const { counts } = points.about;
  const hollow = counts.pruned ? state.map((/** @type {number} */ each) => Number(each === pruned)) : undefined;
  const crosses = [];
  for (let at = 0; counts.failed && at < points.rows; at++) if (state[at] === failed && !points.columns.cancelled[at] && x[at] === x[at]) crosses.push(x[at]);
  progress.show({ x, y, kind: points.column("agent"), shown, xTitle, whole: xTitle === "evaluations", yTitle: scale ? `${cut(objectives[place].name, 20)}: distance to the best` : objectives[place].name, hollow, crosses,
    yTicks: scale?.ticks, lines: [{ points: best, kind: "--best", step: true }] });
  fill(marks, el("span", {}, el("i.swatch-best"), "best so far"), Boolean(hollow?.includes(1)) && el("span", {}, el("i.mark.pruned", {}, "△"), "pruned: the value at its rung"),
    crosses.length > 0 && el("span", {}, el("i.mark.failed", {}, "✕"), `${crosses.length} failed`));
}

/** @param {ArrayLike<number>} values @param {ArrayLike<number>} shown @param {number[]} best @param {number} better */
function regretOf(values, shown, best, better) {
  if (!best.length) return null;
  let worst = values[best[0]];
  for (let at = 0; at < values.length; at++) if (shown[at] && better * values[at] < better * worst) worst = values[at];
  return regretScale(values[best[best.length - 1]], best.map((at) => values[at]), worst, better, tick);
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
  const line = improvements(x, y, shown, sign());
  const scale = (address.get("scale") ?? "gains") === "gains" ? regretOf(y, shown, line, sign()) : null;
  front.show({ x, y: scale ? y.map(scale.place) : y, kind: points.column("agent"), shown, xTitle: chosen[1], yTitle: scale ? `${cut(points.about.objective, 20)}: distance to the best` : points.about.objective, log, yTicks: scale?.ticks,
    lines: [{ points: line, kind: "--best", step: true }] });
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
