// @ts-check
/** Names and numbers of networks and of what was measured on them. */

import { el, number, plainWord } from "../parts/page.js";

/**
 * @typedef {object} Measured
 * @property {number} mean @property {number} trainings @property {number | null} error @property {string} protocol
 *
 * @typedef {object} Measure as in archive/queries/measures.py
 * @property {string} task @property {string} protocol @property {string} metric @property {string} device
 * @property {string} direction @property {boolean} mixed @property {(Measured | null)[]} values @property {number[]} best
 */

/** @param {any} network */
export const nameOf = (network) => network.model ?? network.key.slice(0, 10);

/** Whether it is a speed or a time on a device. @param {Measure} measure */
export const isSpeed = (measure) => Boolean(measure.device);

/** What names a measure in the address. @param {Measure} measure */
export const idOf = (measure) => [measure.task, measure.metric, measure.device && measure.protocol, measure.device].filter(Boolean).join(" ");

/** The size of the inputs that a protocol of a speed names. @param {Measure} measure */
function sizeOf(measure) {
  const side = /@(\d+)$/.exec(measure.protocol)?.[1];
  return side ? `, ${side} px` : "";
}

/** The device of a speed, with the software where several protocols share it. @param {Measure} measure @returns {string} */
export function deviceText(measure) {
  const training = measure.task === "training" ? ", training" : "";
  return `${measure.device}${sizeOf(measure)}${training}`;
}

/** A measure in a few words. @param {Measure} measure @returns {string} */
export function measureText(measure) {
  if (isSpeed(measure)) return `${plainWord("quantities", measure.metric).replaceAll("_", " ")} on ${deviceText(measure)}`;
  const metric = plainWord("quantities", measure.metric);
  return measure.task ? `${measure.task}, ${metric}` : metric;
}

/** A value with the number of its trainings, and their standard error. @param {Measured | null} value */
export function valueText(value) {
  if (!value) return "–";
  return value.error === null ? number(value.mean) : `${number(value.mean)} ± ${number(Number(value.error.toPrecision(2)))} (${value.trainings})`;
}

/** A ratio in words: 1.5 times. @param {number} ratio */
export const times = (ratio) => `${ratio < 1.995 ? Number(ratio.toFixed(2)) : number(Number(ratio.toPrecision(2)))} times`;

/** @param {Measure} measure */
export const sign = (measure) => (measure.direction === "minimise" ? -1 : 1);

/** Which of two networks is ahead: 0 or 1; null where that is not known. @param {Measure} measure */
export const ahead = (measure) => (measure.best.length === 1 ? measure.best[0] : null);

/** The difference of the second value to the first, with a sign and the colour of its meaning. @param {Measure} measure */
export function differenceText(measure) {
  const [first, second] = measure.values;
  if (!first || !second) return "–";
  const difference = second.mean - first.mean;
  const text = `${difference > 0 ? "+" : difference < 0 ? "−" : "±"}${number(Math.abs(difference))}`;
  if (ahead(measure) === null) return el("span.quiet", {}, text);
  return el(sign(measure) * difference > 0 ? "b.gain" : "b.loss", {}, text);
}
