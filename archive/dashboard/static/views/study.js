// @ts-check
/** One study, live: how far it is, what runs, its results and what led to them, and the table of its proposals. */

import {
  address, api, badge, carry, change, choice, el, failed, fill, isCancelled, isLimited, isRefusal, mayWrite, moment, networkAnchor, number, one, quantity,
  seconds, section, settings, studyPath, toast, view,
} from "../parts/page.js";
import { comparing } from "../parts/basket.js";
import { offer, refill } from "../parts/focus.js";
import { follow } from "../parts/live.js";
import { noteOf } from "../parts/note.js";
import { Points } from "../parts/points.js";
import { Table } from "../parts/table.js";
import { later, throttled } from "../parts/timing.js";
import { answerPart, refreshAnswer, showAnswer, showState, stateLine, stopStudy } from "../study/answer.js";
import { curvesCard, refreshCurves, showCurves } from "../study/curves.js";
import { gainsPart, refreshGains } from "../study/gains.js";
import { lineagePart, refreshLineage } from "../study/lineage.js";
import { mattersPart, refreshMatters } from "../study/matters.js";
import { isFinished } from "../study/pace.js";
import { growthCard, objectivesCard, paretoCard, refreshObjectives } from "../study/objectives.js";
import { parallelPart, refreshParallel } from "../study/parallel.js";
import { frontCard, predictedCard, progressCard, showScatters } from "../study/scatters.js";
import { isRecorded, name, openNumber, sign, signed, study } from "../study/state.js";
import { refreshTimeline, runningCard, showRunning, showTrainers, takeWorkers, timelinePart } from "../study/workers.js";

const PAGE = 50;
const RETRY = 2000;

let stop = () => {};

/** Parts of a study of recorded runs, which few pages need. @type {typeof import("../study/recorded.js") | null} */
let recorded = null;

const facts = el("dl.facts");
const actions = el("div.tools");
const stopButton = /** @type {HTMLButtonElement} */ (el("button.danger.small", { type: "button", onclick: stopStudy }, "Stop the study"));

const table = new Table([
  { name: "number", title: "#", numeric: true, cell: (row) => el("button.small", { type: "button", onclick: () => openNumber(row.number) }, `#${row.number}`) },
  { name: "state", cell: (row) => [badge(isCancelled(row) ? "cancelled" : row.state), row.reason ? el("span.quiet.reason", {}, row.reason) : ""] },
  { name: "value", numeric: true, cell: (row) => number(row.value) },
  { name: "architecture", title: "network", cell: (row) => networkAnchor(row.architecture) },
  { name: "mean", title: "predicted", numeric: true, wide: true, optional: true, cell: (row) => (row.mean === null ? "–" : `${number(signed(row.mean))} ± ${number(row.std)}`) },
  { name: "epochs", numeric: true, wide: true, optional: true, cell: (row) => number(row.epochs) },
  { name: "seconds", title: "time", numeric: true, wide: true, optional: true, cell: (row) => seconds(row.seconds) },
  { name: "params", title: "parameters", numeric: true, wide: true, optional: true, cell: (row) => (row.params === null ? "–" : quantity(row.params)) },
  { name: "agent", wide: true },
  { name: "finished", title: "ended", tight: true, wide: true, cell: (row) => moment(row.finished) },
], {
  sort: address.get("sort") ?? "value", descending: (address.get("order") ?? "") === "desc",
  sorted: (sort, descending) => { carry({ sort, order: descending ? "desc" : "asc", page: null }); loadTable(); },
  empty: "no proposal",
});
/** @type {import("../parts/table.js").Column} */
const CONFIGURATION = { name: "configuration", unsorted: true, cell: (row) => settings(row.configuration) };
/** @type {ReturnType<typeof noteOf>} */
let note;
const tableTools = el("div.tools");
const pager = el("div.tools");

/** Settings of the study, which seldom change. */
function showFacts() {
  const { about } = study.points;
  stopButton.hidden = isFinished(about) || isRecorded();
  const fact = (/** @type {string} */ title, /** @type {any} */ value) => el("div", {}, el("dt", {}, title), el("dd", {}, value));
  refill(facts, fact("task", about.task), fact("protocol", about.protocol), fact("space", about.space), about.agent && fact("agent", about.agent),
    fact(about.objectives.length > 1 ? "objectives" : "direction", about.objectives.length > 1
      ? about.objectives.map((/** @type {any} */ each) => `${each.name} (${each.direction})`).join(", ") : about.direction),
    about.constraints.length > 0 && fact("constraints", about.constraints.join(", ")), fact("created", moment(about.created)));
}

/** Address of the comparison, in the objective of the progress. */
function compareLink() {
  const objective = address.get("progress");
  return `/compare?${new URLSearchParams({ study: name, ...objective && { objective } })}`;
}

function showActions() {
  fill(actions,
    el("a", { href: compareLink(), onclick: (/** @type {Event} */ event) => { /** @type {HTMLAnchorElement} */ (event.currentTarget).href = compareLink(); } }, "Compare with other studies"),
    comparing("study", name, { long: true }),
    el("a", { href: `/map?study=${encodeURIComponent(name)}` }, "Map"),
    el("a", { href: `/ask?query=lineage&study=${encodeURIComponent(name)}` }, "Saved queries"));
}

let asked = 0;

async function loadTable() {
  const mine = ++asked;
  const page = Number(address.get("page") ?? 0);
  const query = { sort: table.sort, order: table.descending ? "desc" : "asc", offset: String(page * PAGE), limit: String(PAGE),
    state: address.get("state") ?? "", find: address.get("find") ?? "" };
  try {
    const found = await api(studyPath(name, "proposals", query));
    if (mine !== asked) return;
    if (found.proposals.some((/** @type {any} */ row) => settings(row.configuration))) table.insert("architecture", CONFIGURATION);
    table.show(found.proposals);
    const last = Math.max(0, Math.ceil(found.total / PAGE) - 1);
    const go = (/** @type {number} */ to) => () => { carry({ page: to ? String(to) : null }); loadTable(); };
    refill(pager, el("span.quiet", {}, `${found.total} proposals`), last > 0 && [el("button.small", { type: "button", disabled: page === 0, onclick: go(page - 1) }, "previous"),
      `${page + 1} of ${last + 1}`, el("button.small", { type: "button", disabled: page >= last, onclick: go(page + 1) }, "next")]);
  } catch (error) {
    return mine === asked && failed(pager, error);
  }
}

function showTableTools() {
  const find = /** @type {HTMLInputElement} */ (el("input", { type: "search", placeholder: "Number, network, agent, worker, reason", "aria-label": "Find proposals", value: address.get("find") ?? "",
    oninput: later(300, () => { carry({ find: find.value, page: null }); loadTable(); }) }));
  const states = ["", "COMPLETE", "RUNNING", "WAITING", "PRUNED", "FAILED"].map((each) => /** @type {[string, string]} */ ([each, each ? each.toLowerCase() : "all"]));
  fill(tableTools, find, choice("state", states, address.get("state") ?? "", (state) => { carry({ state, page: null }); loadTable(); }));
}

const refreshProposals = throttled(2000, loadTable);
const refreshTable = () => (recorded ? recorded.refreshRunTable() : refreshProposals());
study.changed = loadTable;

/** Show what came of the study, as far as it is known. @param {boolean} better whether there is another best result */
function showResult(better) {
  if (!recorded) {
    showAnswer();
    return;
  }
  showState();
  if (better) recorded.refreshBestRun();
}

function showAll() {
  showFacts();
  showResult(true);
  showScatters();
  showCurves();
  showRunning();
}

let started = 0;

/** Load the study, and follow it. The server asks for this again where it cannot say what the page has missed. */
async function start() {
  const mine = ++started;
  try {
    const points = await Points.load(name);
    if (mine !== started) return;
    study.points = points;
    if (isRecorded()) recorded ??= await import("../study/recorded.js");
  } catch (error) {
    if (mine === started) unavailable(error);
    return;
  }
  if (!address.get("order")) table.order(table.sort, table.sort === "value" && sign() > 0);
  document.title = `${name} · Architecture Archive`;
  if (!document.body.contains(facts)) build();
  showAll();
  refreshTable();
  refreshCurves();
  refreshWay();
  refreshObjectives();
  stop();
  stop = follow({ [`study:${name}`]: study.points.version, workers: "" }, take);
  if (address.get("proposal")) openNumber(Number(address.get("proposal")));
}

/** Show how the best result was found. */
function refreshWay() {
  if (!recorded) {
    refreshLineage();
    return;
  }
  recorded.refreshRunTree();
  recorded.refreshLeaderboard();
}

/** @param {unknown} error */
function unavailable(error) {
  const refused = isRefusal(error);
  // During an outage, the results so far stay in sight.
  if (refused || !document.body.contains(facts)) {
    const title = refused && error.status === 404 ? "No such study" : "The study cannot be shown";
    fill(view, section(title, el("p.bad", { role: "alert" }, error instanceof Error ? error.message : ""), el("p", {}, el("a", { href: "/" }, "All studies"))));
  }
  if (!refused) setTimeout(start, RETRY);
}

function build() {
  const { about } = study.points;
  note = noteOf({ study: name }, about.note, about.tags);
  showActions();
  showTableTools();
  const head = el("section.card.head", {}, el("div.title", {}, el("h1", {}, name), stateLine, stopButton), recorded ? recorded.bestRunPart : answerPart, facts, note.element, actions);
  const curves = el("div.cards", {}, curvesCard, frontCard);
  if (recorded) {
    fill(view, head, el("div.parts", {}, recorded.runTreePart), recorded.runTableCard, progressCard, el("div.parts", {}, recorded.leaderboardPart, mattersPart, parallelPart, gainsPart), curves);
    return;
  }
  fill(view,
    head,
    objectivesCard,
    el("div.cards", {}, paretoCard, growthCard),
    progressCard,
    curves,
    el("div.parts", {}, mattersPart, parallelPart, lineagePart, gainsPart, predictedCard, runningCard, timelinePart),
    section("Proposals", tableTools, table.element, pager));
}

/** @param {Record<string, any>} news */
function take(news) {
  const own = news[`study:${name}`];
  if (own?.reset) {
    start();
    return;
  }
  if (news.workers) takeWorkers(news.workers);
  if (!own) return;
  const { points } = study;
  const best = points.about.best?.number;
  if (points.take(own)) {
    showScatters();
    if (recorded) refreshWay();
    else refreshAnswer(points.about.best?.number !== best);
    refreshTable();
    refreshCurves();
    for (const refresh of [refreshObjectives, refreshTimeline, refreshParallel, refreshMatters, refreshGains]) refresh();
  }
  showFacts();
  showResult(points.about.best?.number !== best);
  showTrainers();
  note.update(points.about.note, points.about.tags);
  if (own.running) {
    showRunning();
    showCurves();
    refreshTimeline();
  }
  if (points.about.best?.number !== best) refreshWay();
}

if (name) start();
else location.href = "/";
one("#view").focus({ preventScroll: true });
