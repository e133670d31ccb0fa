// @ts-check
/** The home page: what runs, the best of each task, the map of everything evaluated, all studies. */

import {
  api, badge, drawing, el, fill, isLimited, networkLink, number, rounded, seconds, section, studyAnchor, studyLink, studyPath, view,
} from "../parts/page.js";
import { commandLine } from "../parts/copying.js";
import { comparing } from "../parts/basket.js";
import { offer, refill } from "../parts/focus.js";
import { follow } from "../parts/live.js";
import { MOST, Places } from "../parts/places.js";
import { Table } from "../parts/table.js";
import { whenSeen } from "../parts/timing.js";

/** Tasks whose best network is shown. */
const TASKS = 6;

/** @param {any} row */
const evaluated = (row) => (row.counts?.complete ?? 0) + (row.counts?.pruned ?? 0);

/** @type {Map<string, any>} */
const studies = new Map();
const filter = /** @type {HTMLInputElement} */ (el("input", {
  type: "search", placeholder: "Filter by name, task, agent or tag", "aria-label": "Filter", oninput: show,
}));
const summary = el("p.quiet");
const table = new Table([
  { name: "name", title: "study", cell: (row) => [studyAnchor(row.name), (row.tags ?? []).map((/** @type {string} */ tag) => el("span.tag", {}, tag))].flat() },
  { name: "best", numeric: true, cell: (row) => [el("b", {}, number(row.best)), el("span.quiet.wide", {}, ` ${row.objective}`)] },
  { name: "state", cell: states, key: (row) => row.counts?.running ?? 0 },
  { name: "done", title: "evaluated", numeric: true, cell: progress, key: evaluated },
  { name: "agent", tight: true, wide: true },
  { name: "task", tight: true, wide: true },
  { name: "space", tight: true, wide: true },
  { name: "seconds", title: "training", numeric: true, wide: true, cell: (row) => seconds(row.seconds) },
  { name: "answered", title: "reused", numeric: true, wide: true },
], { link: (row) => studyLink(row.name), sort: "created", descending: true, empty: "No study has all of these words." });

/** @param {any} row */
function progress(row) {
  if (!isLimited(row)) return [String(evaluated(row)), el("span.quiet", {}, ", no limit")];
  const share = row.budget ? Math.min(1, evaluated(row) / row.budget) : 0;
  return [`${evaluated(row)} / ${row.budget} `, el("progress", { value: share, max: 1, "aria-label": "evaluated" })];
}

/** @param {any} row */
function states(row) {
  const shown = ["running", "waiting", "failed"].filter((state) => row.counts?.[state]);
  if (!shown.length) return el("span.quiet", {}, evaluated(row) >= row.budget ? "done" : "at rest");
  return shown.map((state) => el("span.pair", {}, badge(state), ` ${row.counts[state]}`));
}

/** @param {number} count @param {string} one @param {string} many */
const counted = (count, one, many) => `${count} ${count === 1 ? one : many}`;

/** Trainings of a study that have ended. @param {any} row */
const trained = (row) => evaluated(row) - (row.answered ?? 0);

// What runs now.

const runs = el("div.runs");
const running = section("Running now", runs);

/** Milliseconds for which a search is shown between two trainings. */
const BETWEEN = 20_000;
/** When each study was last seen to run. @type {Map<string, number>} */
const seen = new Map();

/** @param {any[]} rows */
function showRuns(rows) {
  const moment = Date.now();
  for (const row of rows) if (row.counts?.running) seen.set(row.name, moment);
  const now = rows.filter((row) => row.counts?.running || (moment - (seen.get(row.name) ?? 0) < BETWEEN && (!isLimited(row) || evaluated(row) < row.budget)));
  // The latest one comes last, so that the others keep their places.
  now.sort((first, second) => byAge(second, first));
  refill(runs, now.length ? now.map((row) => el("div.run", {}, studyAnchor(row.name), el("span.number", {}, progress(row)), el("span.quiet", {}, timeLeft(row)),
    row.best !== null && el("span", {}, `best ${row.objective} `, el("b.number", {}, number(row.best)))))
    : el("p.quiet", {}, "Nothing runs. A search is started, or continued, by ", el("code", {}, "archive search")));
}

/** The remaining time by the mean training so far, with as many at once as now. @param {any} row */
function timeLeft(row) {
  const left = row.budget - evaluated(row);
  if (!isLimited(row) || left <= 0 || trained(row) < 1 || !row.seconds) return "";
  return `about ${seconds(Math.round((left * row.seconds) / trained(row) / Math.max(1, row.counts?.running ?? 0)))} left`;
}

// The best of each task.

const winners = el("div.winners");
const best = section("Best of each task", winners);
/** Card of each task that is shown. @type {Map<string, { card: HTMLElement, text: HTMLElement, sure: HTMLElement, refresh: () => void, row: any }>} */
const cards = new Map();
/** Card of the best published network. @type {HTMLElement | null} */
let published = null;

/** @param {any[]} rows */
function showBest(rows) {
  /** @type {Map<string, any>} */
  const tasks = new Map();
  for (const row of rows) {
    if (row.best === null || row.best === undefined) continue;
    const key = JSON.stringify([row.task, row.protocol, row.objective, row.direction]);
    const before = tasks.get(key);
    if (!before || (row.direction === "minimise" ? row.best < before.best : row.best > before.best)) tasks.set(key, row);
  }
  const shown = [...tasks].slice(0, TASKS);
  best.hidden = !shown.length && !published;
  const elements = shown.map(([key, row]) => {
    const made = cards.get(key) ?? card(key);
    if (made.row?.name !== row.name || made.row?.best !== row.best) {
      made.row = row;
      made.refresh();
    }
    offer(made.text, [row.name, row.best], () => [el("b", {}, number(row.best)), el("span", {}, row.objective, el("span.quiet", {}, row.direction === "minimise" ? ", smaller is better" : "")),
      el("span.quiet", {}, `${row.task}, ${row.protocol}`), studyAnchor(row.name)]);
    return made.card;
  });
  const all = published ? [...elements, published] : elements;
  if (all.some((element, place) => winners.children[place] !== element) || winners.children.length !== all.length) fill(winners, all);
}

/** @param {string} key */
function card(key) {
  const place = el("a.picture");
  const text = el("div.won");
  const sure = el("span.quiet.sure");
  const chosen = el("div.choosing");
  const element = el("div.winner", {}, place, text, sure, chosen);
  const made = { card: element, text, sure, refresh: () => {}, row: /** @type {any} */ (null) };
  let drawn = "";
  made.refresh = whenSeen(element, async () => {
    const { name } = made.row;
    const quick = await api(studyPath(name, "answer", { estimated: "no" })).catch(() => null);
    if (!quick?.architecture) return;
    if (quick.architecture !== drawn) {
      showPicture(place, quick.architecture, studyLink(name), `The best network of ${name}`);
      chosen.replaceChildren(comparing("network", quick.architecture, { long: true }));
    }
    drawn = quick.architecture;
    const answer = await api(studyPath(name, "answer")).catch(() => null);
    if (answer?.architecture && name === made.row.name) fill(sure, certainty(answer));
  });
  cards.set(key, made);
  return made;
}

/** @param {any} answer @returns {string} */
function certainty(answer) {
  if (!answer.noisy) return "exact";
  if (answer.low === null) return answer.evaluations === 1 ? "measured once" : `measured ${answer.evaluations} times`;
  return `expected ${rounded(answer.value, answer)}, 95 %: ${rounded(answer.low, answer)} to ${rounded(answer.high, answer)}`;
}

/** @param {HTMLElement} place @param {string} network @param {string} link @param {string} text */
function showPicture(place, network, link, text) {
  place.setAttribute("href", link);
  place.replaceChildren(...drawing(`/networks/${encodeURIComponent(network)}.svg?width=640&height=220&`, text).childNodes);
}

/** Show the best published network of the largest space. @param {string} space */
async function lookForPublished(space) {
  const found = await api(`/api/published?space=${encodeURIComponent(space)}`).catch(() => null);
  if (!found?.architecture) return;
  const place = el("a.picture");
  const link = networkLink(found.architecture);
  showPicture(place, found.architecture, link, `The best published network on ${found.task}`);
  published = el("div.winner", {}, place, el("div.won", {}, el("b", {}, number(found.value)), el("span", {}, "top-1 (%)"), el("span.quiet", {}, `${found.task}, published`), el("a", { href: link }, found.model || found.architecture.slice(0, 10))),
    el("span.quiet.sure", {}, `best of ${found.networks} networks, each with its own recipe`),
    el("div.choosing", {}, comparing("network", found.architecture, { long: true, ...(found.model ? { text: found.model } : {}) })));
  showBest([...studies.values()].sort(byAge));
}

// The map of everything evaluated.

const places = new Places(420);
places.colour = "value";
const whole = el("p", {}, el("a", { href: "/map" }, "Open the map"));
const map = section("Map of what was evaluated", places.legend, places.element, places.note, whole);
map.hidden = true;
map.classList.add("mapped");
const loadMap = whenSeen(map, async () => {
  const [group] = spaces;
  const newest = [...studies.values()].filter((row) => row.space === group?.space && row.best !== null).sort(byAge)[0];
  const same = [...studies.values()].filter((row) => newest && row.space === newest.space && row.task === newest.task && row.protocol === newest.protocol && row.objective === newest.objective);
  const names = same.sort(byAge).slice(0, MOST).map((row) => row.name);
  if (group) await places.load(group.space, "profile", names);
}, 60_000);
/** Spaces with networks, the largest first. @type {any[]} */
let spaces = [];

/** Look for networks that no study has: imported ones. */
async function lookForNetworks() {
  const choices = await api("/api/map/choices").catch(() => null);
  if (!choices) return;
  spaces = choices.spaces;
  if (spaces.length && !published) lookForPublished(spaces[0].space);
}

// The beginning.

const COMMANDS = [
  ["A first search, in a minute:", "archive search --agent nasbot --task digits --space mlp --budget 20"],
  ["Published networks with their results:", "archive import zoo timm"],
];
const begin = section("Nothing was evaluated yet", el("div.begin", {}, el("p", {}, "This page fills itself as soon as there is a result."),
  COMMANDS.map(([what, command]) => el("div", {}, what, commandLine(command)))));
begin.hidden = true;

/** @param {any} first @param {any} second */
const byAge = (first, second) => (second.created ?? 0) - (first.created ?? 0);

function show() {
  const all = [...studies.values()].sort(byAge);
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = all.filter((row) => {
    const text = `${row.name} ${row.task} ${row.space} ${row.agent} ${row.objective} ${(row.tags ?? []).join(" ")}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  list.hidden = !all.length;
  running.hidden = !all.length;
  map.hidden = !spaces.length;
  begin.hidden = studies.size > 0 || spaces.length > 0;
  showRuns(all);
  showBest(all);
  const total = rows.reduce((sum, row) => sum + evaluated(row), 0);
  fill(summary, `${counted(rows.length, "study", "studies")}, ${counted(total, "evaluation", "evaluations")}`, saved(rows));
  table.show(rows);
}

/** What was not trained twice, by the mean training of each study. @param {any[]} rows */
function saved(rows) {
  let [answers, spared] = [0, 0];
  for (const row of rows) {
    answers += row.answered ?? 0;
    if (trained(row) > 0) spared += ((row.answered ?? 0) * (row.seconds ?? 0)) / trained(row);
  }
  if (!answers) return "";
  return `, ${answers} of them answered without a training${spared >= 1 ? `: about ${seconds(Math.round(spared))} saved` : ""}`;
}

const list = section("Studies", el("div.tools", {}, filter, summary), table.element);
for (const part of [running, best, list]) part.hidden = true;
fill(view, running, best, map, begin, list);
/** What is said of networks that no study has comes with the first studies: nothing moves then. */
const looked = lookForNetworks();
follow({ studies: "" }, async (news) => {
  if (news.studies?.whole) studies.clear();
  for (const [name, study] of Object.entries(news.studies?.studies ?? {})) {
    if (study) studies.set(name, study);
    else studies.delete(name);
  }
  await looked;
  if (!spaces.length) await lookForNetworks();
  show();
  loadMap();
});
setInterval(() => running.hidden || showRuns([...studies.values()]), BETWEEN);
