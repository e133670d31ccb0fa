// @ts-check
/** A recorded run in words: what it changed, what it brought, and how sure that is. */

import { el, number, rounded, runLink } from "../parts/page.js";

/**
 * @typedef {{ name?: string, first?: any, second?: any, file?: string, network?: string }} Step what a run changes of its parent: a value, its network, or a source file
 */

/** A gain with its sign and the colour of its meaning; nothing without one. @param {number | null | undefined} gain @returns {HTMLElement | null} */
export function gainText(gain) {
  if (gain === null || gain === undefined || !Number.isFinite(gain)) return null;
  return el(gain > 0 ? "b.gain" : gain < 0 ? "b.loss" : "b.quiet", {}, `${gain > 0 ? "+" : gain < 0 ? "−" : "±"}${number(Math.abs(gain))}`);
}

/** @param {any} value of a run; null where it is absent */
const valueText = (value) => (value === null || value === undefined ? "absent" : number(value));

/** What a run changes, each in a few words. @param {{ steps: Step[], further_steps: number }} run @returns {HTMLElement[]} */
export function stepItems({ steps, further_steps: further }) {
  const items = steps.map((step) => {
    if (step.network) return el("span.step", {}, el("span.quiet", {}, "network "), step.network);
    if (step.file) return el("span.step", {}, el("code", {}, step.file));
    return el("span.step", {}, el("span.quiet", {}, `${step.name} `), step.first === null ? null : [`${valueText(step.first)} → `], valueText(step.second));
  });
  return further ? [...items, el("span.step.quiet", {}, `and ${further} more`)] : items;
}

/** @param {string} study @param {number} run @param {boolean} [best] whether it is the best one @returns {HTMLElement} */
export const runAnchor = (study, run, best = false) => el("a.tight", { href: runLink(study, run) }, best ? el("i.star", { title: "the best run" }, "★ ") : null, `#${run}`);

/** A run that another one came from; of another study, with its name. @param {any} run @returns {HTMLElement | null} */
export function parentAnchor(run) {
  if (run.parent === null) return null;
  const at = run.parent.lastIndexOf("#");
  const name = run.parent_number === null ? run.parent : `#${run.parent_number}`;
  return el("a.tight", { href: runLink(run.parent.slice(0, at), Number(run.parent.slice(at + 1))) }, name);
}

/** How far a number may be trusted, by the repeats of its configuration. @param {any} run @returns {(string | HTMLElement)[]} */
export function spreadWords(run) {
  const { spread } = run;
  if (!spread) return run.value === null ? [] : ["One run of this configuration: run it with other seeds to see the noise."];
  const interval = spread.low === null ? "" : `, 95 %: ${rounded(spread.low, spread)} to ${rounded(spread.high, spread)}`;
  return [`The ${spread.results} runs of this configuration have a mean of `, el("b", {}, rounded(spread.mean, spread)), `${interval}.`];
}

/** An end of an interval, with a true minus. @param {number} value @param {any} interval */
const bound = (value, interval) => rounded(value, interval).replace("-", "−");

/** Whether a configuration is better than its parent's. @param {any} run @returns {(string | HTMLElement | null)[]} */
export function verdictWords(run) {
  const { gain, gain_low: low, gain_high: high } = run;
  if (gain === null) return [];
  const side = gain > 0 ? "better" : gain < 0 ? "worse" : "equal";
  if (low === null) return [`Whether it is ${side} by more than noise is unknown: run it and its parent with two seeds or more.`];
  const size = [gainText(gain), `, 95 %: ${bound(low, { low, high })} to ${bound(high, { low, high })}, by the means of ${run.results} and ${run.parent_results} runs`];
  if (low <= 0 && high >= 0) return ["No more than noise: ", ...size, "."];
  return [`More than noise: ${side}, `, ...size, "."];
}
