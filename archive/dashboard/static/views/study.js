// @ts-check
/** One study, live: how far it is, what runs, its results, curves, front, lineage, and the table of its proposals. */

import {
  address, api, badge, carry, change, choice, el, failed, fill, mayWrite, moment, networkAnchor, number, one, Refused, seconds, section,
  studyPath, view,
} from "../parts/page.js";
import { Curves } from "../parts/curves.js";
import { follow } from "../parts/live.js";
import { noteOf } from "../parts/note.js";
import { improvements, Points, sorted } from "../parts/points.js";
import { COLOURS, Scatter } from "../parts/scatter.js";
import { showProposal } from "../parts/proposal.js";
import { Table } from "../parts/table.js";

const name = address.get("study") ?? "";
const PAGE = 50;
const AXES = { number: "evaluation", finished: "time", spent: "seconds of training, summed", epochs_spent: "epochs, summed" };
const COSTS = { params: "parameters", flops: "multiply-adds", latency_ms: "latency (ms)", peak_memory_bytes: "peak memory (bytes)",
  seconds: "seconds of training", epochs: "epochs" };

/** @type {Points} */
let points;
let stop = () => {};

const facts = el("dl.facts");
const actions = el("div.tools");
const running = el("div");
const workers = el("div");
const lineage = el("div", {}, el("p.quiet", {}, "Loading …"));
const legend = el("p.legend");
const progress = new Scatter("Value of each evaluation, with the best so far", { describe, open });
const front = new Scatter("Value against cost, with the front", { describe, open });
const predicted = new Scatter("Observed against predicted value", { describe, open });
const curves = new Curves("Curves of the best trainings, and of those that run", { open: (label) => openNumber(Number(label.split(" ")[0].slice(1))) });
const progressTools = el("div.tools");
const frontTools = el("div.tools");
const curveTools = el("div.tools");
const predictedCard = section("Predicted and observed", predicted.element);
const frontCard = section("Value against cost", frontTools, front.element);

const table = new Table([
  { name: "number", title: "#", numeric: true, cell: (row) => el("button.small", { type: "button", onclick: () => openNumber(row.number) }, `#${row.number}`) },
  { name: "state", cell: (row) => [badge(cancelled(row) ? "cancelled" : row.state), row.reason ? el("span.quiet", {}, ` ${row.reason}`) : ""] },
  { name: "value", numeric: true, cell: (row) => number(row.value) },
  { name: "architecture", title: "network", cell: (row) => networkAnchor(row.architecture) },
  { name: "mean", title: "predicted", numeric: true, wide: true, cell: (row) => (row.mean === null ? "–" : `${number(signed(row.mean))} ± ${number(row.std)}`) },
  { name: "epochs", numeric: true, wide: true, cell: (row) => number(row.epochs) },
  { name: "seconds", title: "time", numeric: true, wide: true, cell: (row) => seconds(row.seconds) },
  { name: "params", title: "parameters", numeric: true, wide: true, cell: (row) => number(row.params) },
  { name: "agent", wide: true },
  { name: "finished", title: "ended", wide: true, cell: (row) => moment(row.finished) },
], {
  sort: address.get("sort") ?? "value", descending: (address.get("order") ?? "") === "desc",
  sorted: (sort, descending) => { carry({ sort, order: descending ? "desc" : "asc", page: null }); loadTable(); },
  empty: "no proposal",
});
const tableTools = el("div.tools");
const pager = el("div.tools");

/** @param {any} row */
const cancelled = (row) => row.state === "FAILED" && (row.reason ?? "").startsWith("cancelled");
const sign = () => (points.about.direction === "minimise" ? -1 : 1);
/** Predictions are scores: larger is better. @param {number} score */
const signed = (score) => sign() * score;

/** @param {number} at */
function describe(at) {
  const value = (/** @type {string} */ column) => points.columns[column][at];
  const lines = [`#${value("number")}  ${points.about.objective} ${number(value("value"))}`, points.agents[value("agent")] ?? ""];
  for (const [column, title] of Object.entries(COSTS)) {
    if (value(column) === value(column)) lines.push(`${title}: ${number(value(column))}`);
  }
  if (value("mean") === value("mean")) lines.push(`predicted: ${number(signed(value("mean")))} ± ${number(value("std"))}`);
  return lines.filter(Boolean).map((line, place) => el(place ? "div" : "b", {}, line));
}

/** @param {number} at */
function open(at) {
  openNumber(points.columns.number[at]);
}

/** @param {number} proposal */
function openNumber(proposal) {
  carry({ proposal: String(proposal) });
  showProposal(name, proposal, { closed: () => carry({ proposal: null }), changed: () => loadTable() });
}

function showFacts() {
  const { about } = points;
  const done = (about.counts.complete ?? 0) + (about.counts.pruned ?? 0);
  const best = about.best;
  const fact = (/** @type {string} */ title, /** @type {any} */ value) => el("div", {}, el("dt", {}, title), el("dd", {}, value));
  fill(facts,
    fact(`best ${about.objective}`, best ? [el("b", { id: "best" }, number(best.value)), " ", networkAnchor(best.architecture),
      " ", el("button.small", { type: "button", onclick: () => openNumber(best.number) }, `#${best.number}`)] : "–"),
    fact("evaluated", [el("span", { id: "done" }, String(done)), ` of ${about.budget} `, el("progress", { value: Math.min(1, done / (about.budget || 1)), max: 1 })]),
    fact("proposals", Object.entries(about.counts).map(([state, count]) => [badge(state), ` ${count}  `]).flat()),
    fact("agent", about.agent ?? "–"), fact("task", about.task), fact("protocol", about.protocol), fact("space", about.space),
    fact("direction", about.direction), fact("created", moment(about.created)));
}

function showActions() {
  fill(actions,
    el("a", { href: `/compare?study=${encodeURIComponent(name)}` }, "Compare with other studies"),
    el("a", { href: `/map?study=${encodeURIComponent(name)}` }, "Map"),
    el("a", { href: `/ask?query=lineage&study=${encodeURIComponent(name)}` }, "Saved queries"),
    mayWrite && el("button.danger.small", { type: "button", onclick: () => change("The study ends when what runs has ended.", "stop", { study: name },
      `Stop the study ${name}? What waits is cancelled; what runs ends.`).then(() => loadTable()) }, "Stop the study"));
}

function showLegend() {
  const used = points.agents.slice(0, COLOURS.length);
  fill(legend, used.length > 1 ? used.map((agent, at) => el("span", {}, el(`i.swatch-${at}`), agent)) : null);
}

function showProgress() {
  const by = address.get("x") ?? "number";
  const whole = points.comparable();
  const y = points.column("value");
  const x = by === "spent" ? summed("seconds") : by === "epochs_spent" ? summed("epochs") : points.column(by === "finished" ? "finished" : "number");
  const shown = y.map((/** @type {number} */ value, /** @type {number} */ at) => Number(Number.isFinite(value) && x[at] === x[at]));
  progress.show({ x, y, kind: points.column("agent"), shown, xTitle: AXES[/** @type {"number"} */ (by)], yTitle: points.about.objective,
    time: by === "finished", lines: [{ points: improvements(x, y, whole, sign()), kind: "--ink", step: true }] });
}

/** Running sum of a cost in the order of the ends of the trainings. @param {string} column */
function summed(column) {
  const costs = points.column(column);
  const ended = points.column("finished");
  const sums = new Float64Array(points.rows).fill(NaN);
  let sum = 0;
  for (const at of sorted(ended, points.column("value").map(Number.isFinite))) {
    sum += costs[at] || 0;
    sums[at] = sum;
  }
  return sums;
}

function showFront() {
  const known = Object.entries(COSTS).filter(([column]) => points.has(column));
  frontCard.hidden = known.length === 0;
  if (!known.length) return;
  const chosen = known.find(([column]) => column === address.get("cost")) ?? known[0];
  const log = (address.get("log") ?? "yes") === "yes";
  fill(frontTools, choice("cost", known, chosen[0], (cost) => { carry({ cost }); showFront(); }),
    el("label.choice", {}, el("input", { type: "checkbox", checked: log, onchange: () => { carry({ log: log ? "no" : null }); showFront(); } }), " logarithmic"));
  const whole = points.comparable();
  const [x, y] = [points.column(chosen[0]), points.column("value")];
  front.show({ x, y, kind: points.column("agent"), shown: whole, xTitle: chosen[1], yTitle: points.about.objective, log,
    lines: [{ points: improvements(x, y, whole, sign()), kind: "--orange", step: true }] });
}

function showPredicted() {
  predictedCard.hidden = !points.has("mean");
  if (predictedCard.hidden) return;
  const whole = points.comparable();
  const mean = points.column("mean");
  const x = sign() > 0 ? mean : mean.map((/** @type {number} */ value) => -value);
  predicted.show({ x, y: points.column("value"), kind: points.column("agent"), shown: whole, xTitle: "predicted", yTitle: "observed", diagonal: true });
}

/** @type {any[]} */
let bestCurves = [];

async function loadCurves() {
  try {
    bestCurves = (await api(studyPath(name, `curves?top=${address.get("top") ?? 20}`))).curves;
  } catch (error) {
    failed(curves.element, error);
  }
  showCurves();
}

function showCurves() {
  const metrics = new Set([...bestCurves, ...points.running].flatMap((each) => Object.keys(each.curve)));
  const usual = [points.about.objective, `valid_${points.about.objective}`, "valid_loss", "train_loss"].find((each) => metrics.has(each));
  const metric = metrics.has(address.get("metric") ?? "") ? /** @type {string} */ (address.get("metric")) : usual ?? [...metrics][0];
  curvesCard.hidden = !metric;
  if (!metric) return;
  const top = address.get("top") ?? "20";
  fill(curveTools, choice("metric", [...metrics].sort().map((each) => [each, each]), metric, (value) => { carry({ metric: value }); showCurves(); }),
    choice("best", ["5", "20", "100", "500"].map((each) => [each, each]), top, (value) => { carry({ top: value }); loadCurves(); }),
    el("span.legend", {}, el("span", {}, el("i.swatch-0"), "best"), el("span", {}, el("i.swatch-1"), "running")));
  const lines = [];
  for (const each of bestCurves) {
    if (each.curve[metric]) lines.push({ label: `#${each.number}`, x: each.epochs, y: each.curve[metric], colour: "--blue" });
  }
  for (const each of points.running) {
    if (each.curve[metric]?.length) lines.push({ label: `#${each.number} runs`, x: each.epochs, y: each.curve[metric], colour: "--orange", strong: true });
  }
  curves.show(lines, "epoch", metric);
}

const runningTable = new Table([
  { name: "number", title: "#", numeric: true, cell: (row) => el("button.small", { type: "button", onclick: () => openNumber(row.number) }, `#${row.number}`) },
  { name: "architecture", title: "network", cell: (row) => networkAnchor(row.architecture) },
  { name: "epochs", numeric: true, cell: (row) => row.epochs.at(-1) ?? 0, key: (row) => row.epochs.at(-1) ?? 0 },
  { name: "last", title: "last values", cell: (row) => Object.entries(row.curve).map(([metric, values]) => `${metric} ${number(values.at(-1))}`).join(", ") || "–" },
  { name: "started", wide: true, cell: (row) => moment(row.started) },
  { name: "worker", wide: true },
], { empty: "nothing runs" });

/** @type {Map<string, any>} */
const trainers = new Map();

function showWorkers() {
  const own = [...trainers.values()].filter((each) => each.state !== "left" && (each.study === name || each.trials.some((/** @type {any} */ trial) => trial.study === name) || (!each.study && each.state === "idle")));
  fill(workers, own.length ? el("p", {}, own.map((each) => [badge(each.state), ` ${each.id} ${each.device ?? ""}  `]).flat())
    : el("p.quiet", {}, "No trainer serves this study. Start one with: archive trainer"));
}

async function loadLineage() {
  try {
    const found = await api(studyPath(name, "lineage"));
    const values = new Map(found.networks.map((/** @type {any} */ each) => [each.key, each]));
    const path = longest(found.key, found.steps);
    fill(lineage, path.length > 1 ? el("ol.steps", {}, path.map((step, place) => lineageItem(step, values, place ? path[place - 1] : null)))
      : el("p.quiet", {}, found.key ? "The best network has no recorded ancestor." : "No result yet."));
  } catch (error) {
    failed(lineage, error);
  }
}

/** @typedef {{ key: string, operations: string[] }} Step */

/** The longest known way to a network, the first ancestor first. @param {string} key @param {any[]} steps @returns {Step[]} */
function longest(key, steps) {
  const parents = new Map();
  for (const step of steps) parents.set(step.child, [...(parents.get(step.child) ?? []), step]);
  /** @type {Step[]} */
  const path = [];
  const seen = new Set();
  for (let at = key; at && !seen.has(at);) {
    seen.add(at);
    const step = (parents.get(at) ?? []).find((/** @type {any} */ each) => !seen.has(each.parent));
    path.unshift({ key: at, operations: step?.operations ?? [] });
    at = step?.parent;
  }
  return path;
}

/** @param {Step} step @param {Map<string, any>} values @param {Step | null} before */
function lineageItem(step, values, before) {
  const own = values.get(step.key);
  const last = before && values.get(before.key);
  const gain = own?.value != null && last?.value != null ? sign() * (own.value - last.value) : null;
  return el("li", {}, networkAnchor(step.key), own ? [" ", el("button.small", { type: "button", onclick: () => openNumber(own.number) }, `#${own.number}`)] : null,
    own?.value != null ? [" ", el("b", {}, number(own.value))] : null,
    gain === null ? null : el(gain >= 0 ? "span.gain" : "span.loss", {}, ` ${gain >= 0 ? "+" : "−"}${number(Math.abs(gain))}`),
    step.operations.length ? el("div.quiet", {}, step.operations.join(", ")) : null);
}

let asked = 0;

async function loadTable() {
  const mine = ++asked;
  const page = Number(address.get("page") ?? 0);
  const query = new URLSearchParams({ sort: table.sort, order: table.descending ? "desc" : "asc", offset: String(page * PAGE), limit: String(PAGE),
    state: address.get("state") ?? "", find: address.get("find") ?? "" });
  try {
    const found = await api(studyPath(name, `proposals?${query}`));
    if (mine !== asked) return;
    table.show(found.proposals);
    const last = Math.max(0, Math.ceil(found.total / PAGE) - 1);
    const go = (/** @type {number} */ to) => () => { carry({ page: to ? String(to) : null }); loadTable(); };
    fill(pager, el("span.quiet", {}, `${found.total} proposals`), last > 0 && [el("button.small", { type: "button", disabled: page === 0, onclick: go(page - 1) }, "previous"),
      `${page + 1} of ${last + 1}`, el("button.small", { type: "button", disabled: page >= last, onclick: go(page + 1) }, "next")]);
  } catch (error) {
    if (mine === asked) failed(pager, error);
  }
}

function showTableTools() {
  const find = /** @type {HTMLInputElement} */ (el("input", { type: "search", placeholder: "Number, network, agent, worker, reason", "aria-label": "Find proposals", value: address.get("find") ?? "",
    oninput: later(300, () => { carry({ find: find.value, page: null }); loadTable(); }) }));
  const states = ["", "COMPLETE", "RUNNING", "WAITING", "PRUNED", "FAILED"].map((each) => /** @type {[string, string]} */ ([each, each ? each.toLowerCase() : "all"]));
  fill(tableTools, find, choice("state", states, address.get("state") ?? "", (state) => { carry({ state, page: null }); loadTable(); }));
}

/** Call a function once, a moment after the last request for it. @param {number} wait @param {() => void} work */
function later(wait, work) {
  /** @type {number | undefined} */
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, wait);
  };
}

const curvesCard = section("Curves", curveTools, curves.element);
const refreshTable = throttled(2000, loadTable);
const refreshCurves = throttled(5000, loadCurves);
const refreshLineage = throttled(10_000, loadLineage);

/** Call a function now, or as soon as this much time has passed since its last call. @param {number} wait @param {() => void} work */
function throttled(wait, work) {
  let last = 0;
  /** @type {number | undefined} */
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(() => { last = Date.now(); work(); }, Math.max(0, last + wait - Date.now()));
  };
}

function showAll() {
  showFacts();
  showLegend();
  showProgress();
  showFront();
  showPredicted();
  showCurves();
  runningTable.show(points.running);
}

async function start() {
  try {
    points = await Points.load(name);
  } catch (error) {
    const gone = error instanceof Refused && error.status === 404;
    fill(view, section(gone ? "No such study" : "The study cannot be shown", el("p.bad", { role: "alert" }, error instanceof Error ? error.message : ""), el("p", {}, el("a", { href: "/" }, "All studies"))));
    return;
  }
  if (!address.get("order")) table.order(table.sort, table.sort === "value" && sign() > 0);
  document.title = `${name} · Architecture Archive`;
  if (!document.body.contains(facts)) build();
  showAll();
  loadTable();
  loadCurves();
  loadLineage();
  stop();
  stop = follow({ [`study:${name}`]: points.version, workers: "" }, take);
  if (address.get("proposal")) openNumber(Number(address.get("proposal")));
}

function build() {
  fill(progressTools, choice("against", Object.entries(AXES), address.get("x") ?? "number", (x) => { carry({ x: x === "number" ? null : x }); showProgress(); }), legend);
  fill(running, runningTable.element);
  showActions();
  showTableTools();
  fill(view,
    el("section.card", {}, el("h1", {}, name), facts, noteOf({ study: name }, points.about.note, points.about.tags), actions),
    el("div.cards", {}, section("Progress", progressTools, progress.element), frontCard, curvesCard, predictedCard),
    el("div.cards", {}, section("Running", running, workers), section("Lineage of the best network", lineage)),
    section("Proposals", tableTools, table.element, pager));
}

/** @param {Record<string, any>} news */
function take(news) {
  const own = news[`study:${name}`];
  if (own?.reset) {
    start();
    return;
  }
  if (news.workers) {
    if (news.workers.whole) trainers.clear();
    for (const [id, worker] of Object.entries(news.workers.workers)) {
      if (worker) trainers.set(id, worker);
      else trainers.delete(id);
    }
    showWorkers();
  }
  if (!own) return;
  const best = points.about.best?.number;
  if (points.take(own)) {
    showProgress();
    showFront();
    showPredicted();
    showLegend();
    refreshTable();
    refreshCurves();
  }
  showFacts();
  if (own.running) {
    runningTable.show(points.running);
    showCurves();
  }
  if (points.about.best?.number !== best) refreshLineage();
}

if (name) start();
else location.href = "/";
one("#view").focus({ preventScroll: true });
