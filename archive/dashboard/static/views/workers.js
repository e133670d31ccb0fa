// @ts-check
/** Workers and the queue of all studies. */

import { address, api, badge, carry, change, choice, el, failed, fill, mayWrite, moment, networkAnchor, number, section, studyAnchor, studyLink, view } from "../parts/page.js";
import { follow } from "../parts/live.js";
import { Table } from "../parts/table.js";
import { TimelineView, zoomOfAddress } from "../parts/timeline.js";
import { whenSeen } from "../parts/timing.js";

const PAUSE = 5000;

/** @type {Map<string, any>} */
const workers = new Map();

/** @param {any} row */
const proposalAnchor = (row) => el("a", { href: `${studyLink(row.study)}&proposal=${row.number ?? Number(row.proposal.split("#").pop())}` }, row.id ?? row.proposal);

const workerTable = new Table([
  { name: "id", title: "worker", tight: true },
  { name: "state", cell: (row) => [badge(row.state), row.rest_reason ? el("span.quiet", {}, ` ${row.rest_reason}`) : ""] },
  { name: "trials", cell: (row) => (row.trials.length ? row.trials.map((/** @type {any} */ trial) => el("div", {}, proposalAnchor(trial), ` ${trial.epochs} epochs`)) : "–"), key: (row) => row.trials.length },
  { name: "device", wide: true, cell: (row) => (row.devices.length > 1 ? row.devices.map((/** @type {string} */ device) => el("div", {}, device)) : (row.device ?? "–")) },
  { name: "host", wide: true },
  { name: "slots", numeric: true, wide: true },
  { name: "study", wide: true, cell: (row) => (row.study ? studyAnchor(row.study) : "any") },
  { name: "seen", title: "last seen", tight: true, wide: true, cell: (row) => moment(1000 * row.seen) },
], { empty: "No worker was seen today. Start one with: archive trainer", sort: "id" });

const waitingTable = new Table([
  { name: "id", title: "proposal", cell: proposalAnchor },
  { name: "architecture", title: "network", cell: (row) => networkAnchor(row.architecture) },
  { name: "priority", numeric: true, cell: (row) => number(row.priority) },
  { name: "agent", wide: true },
  { name: "reason", title: "last attempt", wide: true, cell: (row) => (row.cause ? el("span.reason", {}, `${row.cause}: ${row.reason}`) : "") },
  { name: "created", title: "since", tight: true, wide: true, cell: (row) => moment(row.created) },
  { name: "act", title: "", cell: (row) => (mayWrite ? [act("Run next", "prioritise", row, { first: true }), " ", act("Cancel", "cancel", row)] : "") },
], { empty: "nothing waits" });

const failedTable = new Table([
  { name: "id", title: "proposal", cell: proposalAnchor },
  { name: "reason", cell: (row) => el("span.reason", {}, row.reason) },
  { name: "cause", wide: true },
  { name: "architecture", title: "network", wide: true, cell: (row) => networkAnchor(row.architecture) },
  { name: "worker", wide: true },
  { name: "finished", title: "when", tight: true, wide: true, cell: (row) => moment(row.finished) },
  { name: "act", title: "", cell: (row) => (mayWrite ? act("Retry", "retry", row) : "") },
], { empty: "nothing failed" });

/** @param {string} title @param {string} path @param {any} row @param {any} [more] */
const act = (title, path, row, more = {}) => el("button.small", { type: "button", onclick: async () => { if (await change(`${row.id}: done.`, path, { proposal: row.id, ...more })) load(); } }, title);

const note = el("p.quiet");
const SPANS = /** @type {[string, string][]} */ ([["600", "10 minutes"], ["3600", "hour"], ["21600", "6 hours"], ["86400", "day"], ["604800", "week"], ["0", "all time"]]);
const span = () => address.get("span") ?? "3600";
const timelineNote = el("p.quiet", {}, "Loading …");
const timeline = new TimelineView("Trials of each worker over time", { open: (trial) => { location.href = `${studyLink(trial.study)}&proposal=${trial.number}`; }, zoom: zoomOfAddress(),
  zoomed: (zoom) => carry({ from: zoom && String(zoom[0]), to: zoom && String(zoom[1]) }) });
const timelineCard = section("Workers over time", el("div.tools", {}, choice("last", SPANS, span(), (value) => {
  timeline.zoom = null;
  carry({ span: value === "3600" ? null : value, from: null, to: null });
  refreshTimeline(true);
})), timeline.element, timelineNote);
const refreshTimeline = whenSeen(timelineCard, loadTimeline);

async function loadTimeline() {
  try {
    const found = await api(`/api/timeline?seconds=${encodeURIComponent(span())}`);
    timeline.element.hidden = !found.trials.length;
    timeline.show(found, span() === "0" ? null : [found.now - 1000 * Number(span()), found.now]);
    fill(timelineNote, found.trials.length ? `${found.cut ? "The latest " : ""}${found.trials.length} trials. Drag to zoom, double-click to see all.` : "No trial in this time.");
  } catch (error) {
    return failed(timelineNote, error);
  }
}
const blocked = el("p.quiet");

async function load() {
  try {
    const found = await api("/api/queue");
    waitingTable.show(found.waiting);
    failedTable.show(found.failed);
    waitingCard.hidden = !found.waiting.length && !found.unreachable.length;
    failedCard.hidden = !found.failed.length;
    fill(calm, waitingCard.hidden ? "The queue is empty: nothing waits for a trainer." : null);
    const cut = [found.waiting, found.failed].some((rows) => rows.length === found.shown);
    fill(blocked, found.unreachable.map((/** @type {any} */ one) => el("div", {}, `${one.proposals} waiting in ${one.study}, first ${one.first}: ${one.why}`)));
    fill(note, cut ? `the first ${found.shown} of each` : "");
  } catch (error) {
    failed(note, error);
  }
}

const calm = el("p.quiet");
const waitingCard = section("Queue, in its order", blocked, waitingTable.element);
const failedCard = section("Failed and cancelled, latest first", failedTable.element, note);
for (const card of [waitingCard, failedCard, timelineCard]) card.hidden = true;
fill(view, section("Workers", workerTable.element, calm), waitingCard, timelineCard, failedCard);
follow({ workers: "" }, (news) => {
  if (!news.workers) return;
  if (news.workers.whole) workers.clear();
  for (const [id, worker] of Object.entries(news.workers.workers)) {
    if (worker) workers.set(id, worker);
    else workers.delete(id);
  }
  workerTable.show([...workers.values()]);
  timelineCard.hidden = !workers.size;
});
load();
setInterval(() => {
  if (document.visibilityState !== "visible") return;
  load();
  refreshTimeline();
}, PAUSE);
