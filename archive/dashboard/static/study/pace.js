// @ts-check
/** How far a study is: evaluations, elapsed and remaining time, in one line of constant height. */

import { badge, el, isLimited, seconds } from "../parts/page.js";
import { isRecorded } from "./state.js";

/** Latest results whose times tell the pace. */
const LATEST = 20;

/** Whether nothing of a study is left to train: its budget is spent, and nothing waits or runs. @param {any} about */
export function isFinished(about) {
  const { complete = 0, pruned = 0, waiting = 0, running = 0 } = about.counts;
  return isLimited(about) && complete + pruned >= about.budget && !waiting && !running;
}

/** When the latest results ended, the first of them first: the latest rows are usually the latest results. @param {import("../parts/points.js").Points} points */
function latestEnds(points) {
  const ended = points.column("finished");
  /** @type {number[]} */
  const latest = [];
  for (let at = ended.length - 1; at >= 0; at--) {
    const time = ended[at];
    if (time !== time || (latest.length > LATEST && time <= latest[0])) continue;
    if (latest.length > LATEST) latest.shift();
    let place = latest.length;
    while (place && latest[place - 1] > time) place--;
    latest.splice(place, 0, time);
  }
  return latest;
}

/** @param {import("../parts/points.js").Points} points */
export function describeProgress(points) {
  const { about } = points;
  const { complete = 0, pruned = 0, running = 0, waiting = 0 } = about.counts;
  const done = complete + pruned;
  const finished = isFinished(about);
  const works = running > 0 || waiting > 0;
  const others = (/** @type {string} */ state) => Object.entries(about.counts).filter(([each, count]) => each !== "complete" && (each !== state || count > 1))
    .map(([each, count]) => el("span", {}, badge(each), ` ${count}`));
  // Recorded runs have no queue, and end when their author says so.
  if (isRecorded()) return [el("span", {}, el("b", { id: "done" }, String(done)), done === 1 ? " run with a result" : " runs with a result"), ...others("")];
  const ends = latestEnds(points);
  const last = ends[ends.length - 1] ?? -Infinity;
  // Seconds between two results, of the latest ones; NaN with fewer than two.
  const pace = ends.length > 1 ? (last - ends[0]) / (ends.length - 1) / 1000 : NaN;
  const elapsed = ((running ? Date.now() : last) - about.created) / 1000;
  const left = (about.budget - done) * pace;
  const times = [elapsed > 0 && Number.isFinite(elapsed) && `${seconds(Math.round(elapsed))}${running ? " so far" : ""}`,
    running > 0 && isLimited(about) && left > 0 && `about ${seconds(Math.round(left))} left`].filter(Boolean);
  const state = finished ? "finished" : running ? "running" : works ? "waiting" : "stopped";
  return [el(`span.badge.${finished ? "complete" : works ? state : "left"}`, {}, state),
    el("span", {}, el("b", { id: "done" }, String(done)), isLimited(about) ? ` of ${about.budget} evaluated` : " evaluated, no limit"),
    isLimited(about) && el("progress", { value: Math.min(1, done / (about.budget || 1)), max: 1, "aria-label": "evaluated share of the budget" }),
    times.length > 0 && el("span.quiet", {}, times.join(", ")),
    ...others(state)];
}
