// @ts-check
/** What runs in a study, the workers that serve it, and which worker ran which trial when. */

import { api, badge, carry, el, failed, fill, moment, networkAnchor, number, section } from "../parts/page.js";
import { Table } from "../parts/table.js";
import { TimelineView, zoomOfAddress } from "../parts/timeline.js";
import { whenSeen } from "../parts/timing.js";
import { name, openNumber, study } from "./state.js";

/** @type {Map<string, any>} */
const trainers = new Map();
let loaded = false;

/** The last value that is known: an epoch may lack metrics that others have. @param {(number | null)[]} values */
const lastOf = (values) => values.findLast((value) => value !== null) ?? null;

const running = new Table([
  { name: "number", title: "#", numeric: true, cell: (row) => el("button.small", { type: "button", onclick: () => openNumber(row.number) }, `#${row.number}`) },
  { name: "architecture", title: "network", cell: (row) => networkAnchor(row.architecture) },
  { name: "epochs", numeric: true, cell: (row) => row.epochs.at(-1) ?? 0, key: (row) => row.epochs.at(-1) ?? 0 },
  { name: "last", title: "last values", cell: (row) => Object.entries(row.curve).map(([metric, values]) => `${metric} ${number(lastOf(values))}`).join(", ") || "–" },
  { name: "started", wide: true, cell: (row) => moment(row.started) },
  { name: "worker", wide: true },
], { empty: "nothing runs" });

const list = el("div");
const note = el("p.quiet", {}, "Loading …");
const timeline = new TimelineView("Trials of each worker over time", { open: (trial) => openNumber(trial.number), zoom: zoomOfAddress(),
  zoomed: (zoom) => carry({ from: zoom && String(zoom[0]), to: zoom && String(zoom[1]) }) });

export const runningCard = section("Running", running.element, list);
const timelineCard = section("Workers over time", timeline.element, note);
timelineCard.hidden = true;
/** The card is absent before the first trial; its place is there, so that it can be seen. */
export const timelinePart = el("div", {}, timelineCard);
export const refreshTimeline = whenSeen(timelinePart, load);

/** Whether a trial runs, or one waits and has to be told of a trainer. */
const works = () => Boolean(study.points.about.counts.running || study.points.about.counts.waiting);

export function showRunning() {
  runningCard.hidden = !works();
  running.element.hidden = !study.points.running.length;
  running.show(study.points.running);
}

/** @param {{ whole?: boolean, workers: Record<string, any> }} news */
export function takeWorkers(news) {
  if (news.whole) trainers.clear();
  for (const [id, worker] of Object.entries(news.workers)) {
    if (worker) trainers.set(id, worker);
    else trainers.delete(id);
  }
  loaded = true;
  showTrainers();
}

/** Show the trainers that serve the study, once they are known; of a finished study, none is missing. */
export function showTrainers() {
  runningCard.hidden = !works();
  if (!loaded) return;
  const own = [...trainers.values()].filter((each) => each.state !== "left"
    && (each.study === name || each.trials.some((/** @type {any} */ trial) => trial.study === name) || (!each.study && each.state === "idle")));
  fill(list, own.length ? el("p.workers", {}, own.map((each) => el("span", {}, badge(each.state), ` ${each.id} ${each.device ?? ""}`)))
    : el("p.quiet", {}, study.points.about.counts.waiting ? "No trainer serves this study. Start one with: archive trainer" : ""));
}

async function load() {
  try {
    const found = await api(`/api/timeline?${new URLSearchParams({ study: name })}`);
    timelineCard.hidden = !found.trials.length;
    timeline.show(found, null);
    fill(note, `${found.cut ? "The latest " : ""}${found.trials.length} trials. Drag to zoom, double-click to see all.`);
  } catch (error) {
    timelineCard.hidden = false;
    return failed(note, error);
  }
}
