// @ts-check
/** Curves of the trainings: the best ones, those that run, and median and quartiles of all among the others. */

import { Curves } from "../parts/curves.js";
import { offer } from "../parts/focus.js";
import { address, api, carry, choice, el, isRefusal, number, section, studyPath, toast } from "../parts/page.js";
import { throttled } from "../parts/timing.js";
import { name, openNumber, study } from "./state.js";

const [BEST, OTHERS] = [5, 100];
/** Fewest trainings of which there are quartiles. */
const LEAST = 4;

const plot = new Curves("Curves of the best trainings, of those that run, and of others", { describe, legend: false,
  open: (label) => { if (label.startsWith("#")) openNumber(Number(label.slice(1))); } });
const tools = el("div.tools");
const legend = el("p.legend");

export const curvesCard = section("Curves", tools, plot.element, legend);
curvesCard.hidden = true;
export const refreshCurves = throttled(5000, load);

/** Whether a trial has reported a curve: between two of them the plot keeps its place. */
let reported = false;

/** The last answer. @type {{ best: number[], curves: any[] }} */
let found = { best: [], curves: [] };

async function load() {
  try {
    found = await api(studyPath(name, "curves", { top: String(BEST), others: String(OTHERS) }));
  } catch (error) {
    if (!isRefusal(error)) return true;
    toast(error.message, true);
  } finally {
    showCurves();
  }
}

/** @param {string} label */
function describe(label) {
  const { points } = study;
  const proposal = Number(label.slice(1));
  const value = points.columns.value[points.places.get(proposal) ?? -1];
  const run = points.running.find((/** @type {any} */ each) => each.number === proposal);
  const rank = found.best.indexOf(proposal);
  return [el("b", {}, label), el("div", {}, run ? `running, ${run.worker ?? ""}` : `${points.about.objective} ${number(value)}`),
    rank >= 0 ? el("div", {}, rank ? `number ${rank + 1} of all` : "the best") : null].filter(Boolean);
}

export function showCurves() {
  const { points } = study;
  const { curves, best } = found;
  const metrics = new Set([...curves, ...points.running].flatMap((each) => Object.keys(each.curve)));
  const { objective } = points.about;
  const usual = [objective, `valid_${objective}`, "valid_loss", "train_loss"].find((each) => metrics.has(each));
  const metric = metrics.has(address.get("metric") ?? "") ? /** @type {string} */ (address.get("metric")) : usual ?? [...metrics][0];
  reported ||= Boolean(metric);
  curvesCard.hidden = !reported;
  if (!metric) return;
  const names = [...metrics].sort();
  offer(tools, [names, usual], () => [choice("metric", names.map((each) => [each, each]), metric, (value) => { carry({ metric: value }); showCurves(); })]);

  const whole = curves.filter((each) => each.curve[metric]);
  const ranked = (/** @type {any} */ each) => best.indexOf(each.number);
  const line = (/** @type {any} */ each, /** @type {object} */ look) => ({ label: `#${each.number}`, x: each.epochs, y: each.curve[metric], ...look });
  const others = whole.filter((each) => ranked(each) < 0);
  const running = points.running.filter((/** @type {any} */ each) => each.curve[metric]?.length);
  const first = whole.filter((each) => ranked(each) >= 0).sort((one, two) => ranked(two) - ranked(one));
  const spread = quartiles(whole, metric);
  plot.show([
    ...others.map((each) => line(each, { colour: "--grey", alpha: 0.22 })),
    ...spread ? [
      { label: "quartile", x: spread.epochs, y: spread.low, colour: "--ink", alpha: 0, quiet: true },
      { label: "quartile", x: spread.epochs, y: spread.high, colour: "--ink", alpha: 0, quiet: true, band: "--ink" },
      { label: "median", x: spread.epochs, y: spread.middle, colour: "--ink", dash: [6, 4], quiet: true }] : [],
    ...running.map((/** @type {any} */ each) => line(each, { colour: "--running", strong: true })),
    ...first.map((each) => line(each, ranked(each) ? { colour: "--best", alpha: 0.55 } : { colour: "--best", strong: true })),
  ], "epoch", metric);
  const key = (/** @type {string} */ swatch, /** @type {string} */ text) => el("span", {}, el(`i.${swatch}`), text);
  offer(legend, [whole.length, running.length, Boolean(spread)], () => [key("swatch-best", first.length > 1 ? `the best, and the next ${first.length - 1}` : "the best"),
    spread && key("swatch-median", `median and middle half of ${whole.length} trainings`), others.length > 0 && key("swatch-6", "others"), running.length > 0 && key("swatch-running", "running")]);
}

/** Median and quartiles after each epoch that half of the trainings have reached. @param {any[]} curves @param {string} metric */
function quartiles(curves, metric) {
  /** @type {Map<number, number[]>} */
  const values = new Map();
  for (const curve of curves) {
    curve.epochs.forEach((/** @type {number} */ epoch, /** @type {number} */ position) => {
      const value = curve.curve[metric][position];
      if (value === null || value === undefined) return;
      const list = values.get(epoch);
      if (list) list.push(value);
      else values.set(epoch, [value]);
    });
  }
  const lists = [...values].filter(([, list]) => 2 * list.length >= curves.length).sort(([one], [two]) => one - two);
  if (curves.length < LEAST || lists.length < 2) return null;
  // Numbers in a typed array are sorted without a call for each comparison.
  const sorted = lists.map(([, list]) => Float64Array.from(list).sort());
  const share = (/** @type {number} */ part) => sorted.map((list) => list[Math.min(list.length - 1, Math.floor(part * list.length))]);
  return { epochs: lists.map(([epoch]) => epoch), low: share(0.25), middle: share(0.5), high: share(0.75) };
}
