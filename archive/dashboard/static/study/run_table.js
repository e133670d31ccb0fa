// @ts-check
/** The runs of a study as a table with the user's columns, which this browser keeps for each study. */

import { address, api, badge, carry, choice, el, failed, number, plural, runLink, seconds, section, settingText, studyPath } from "../parts/page.js";
import { refill } from "../parts/focus.js";
import { Table } from "../parts/table.js";
import { later, throttled } from "../parts/timing.js";
import { gainText, parentAnchor, runAnchor, stepItems } from "../run/words.js";
import { name, sign, study } from "./state.js";

/** @typedef {import("../parts/table.js").Column} Column */

const PAGE = 50;
/** Values that are columns at first, of those that differ. */
const FIRST_VALUES = 3;
const USUAL = ["number", "value", "gain", "steps", "motivation"];

/** Number of the best run. @type {number | null} */
let best = null;

/** @type {Column[]} */
const FIXED = [
  { name: "number", title: "#", numeric: true, cell: (row) => runAnchor(name, row.number, row.number === best) },
  { name: "value", numeric: true, cell: (row) => (row.value === null ? badge(row.state) : el(row.number === best ? "b.best" : "b", {}, number(row.value))) },
  { name: "gain", title: "over its parent", numeric: true, cell: (row) => gainText(row.gain) ?? "–" },
  { name: "steps", title: "what it changed", unsorted: true, cell: (row) => (row.steps.length ? el("span.what", {}, stepItems(row)) : "–") },
  { name: "motivation", title: "why", unsorted: true, cell: (row) => (row.motivation ? el("span.reason", {}, row.motivation) : "–") },
  { name: "state", cell: (row) => badge(row.state) },
  { name: "reason", title: "reason of the failure", cell: (row) => (row.reason ? el("span.reason", {}, row.reason) : "–") },
  { name: "parent", numeric: true, cell: (row) => parentAnchor(row) ?? "–" },
  { name: "program", tight: true },
  { name: "seed", numeric: true, cell: (row) => number(row.seed) },
  { name: "seconds", title: "time", numeric: true, cell: (row) => seconds(row.seconds) },
  { name: "started", tight: true, cell: (row) => (row.started ? new Date(row.started).toLocaleString() : "–") },
  { name: "code_commit", title: "commit", unsorted: true, cell: (row) => (row.cells.code_commit ? el("code", { title: row.cells.code_commit }, row.cells.code_commit.slice(0, 10)) : "–") },
  { name: "code_branch", title: "branch", unsorted: true, tight: true, cell: (row) => row.cells.code_branch ?? "–" },
];

/** All columns; values and metrics are known once the server has named them. */
let columns = FIXED;
/** Columns of a study of whose choice nothing is kept. */
let usual = USUAL;

const keptAt = () => `archive-columns ${document.body.dataset.place ?? ""} ${name}`;

/** Names of the chosen columns, in their order: of the address, else of this browser; null for the usual ones. @returns {string[] | null} */
function chosen() {
  if (address.has("column")) return address.getAll("column");
  try {
    const kept = JSON.parse(localStorage.getItem(keptAt()) ?? "null");
    return Array.isArray(kept) ? kept.map(String) : null;
  } catch {
    return null;
  }
}

/** The columns that are shown. On a narrow screen the usual ones are fewer; a user's choice stays. @returns {Column[]} */
function shown() {
  const names = chosen();
  const displayed = names ?? usual;
  const some = columns.filter((column) => displayed.includes(column.name) || column.name === "number");
  return names ? some : some.map((column) => ({ ...column, wide: !["number", "value", "gain", "steps"].includes(column.name) }));
}

/** @param {string[] | null} names */
function choose(names) {
  address.delete("column");
  for (const each of names ?? []) address.append("column", each);
  carry({});
  if (names) localStorage.setItem(keptAt(), JSON.stringify(names));
  else localStorage.removeItem(keptAt());
  table.choose(shown());
  showChooser();
  load();
}

const table = new Table(shown(), {
  sort: address.get("sort") ?? "value", descending: address.get("order") === "desc",
  sorted: (sort, descending) => { carry({ sort, order: descending ? "desc" : "asc", page: null }); load(); },
  link: (row) => runLink(name, row.number), empty: "no run",
});
const chooser = el("details");
const pager = el("div.tools");
const find = /** @type {HTMLInputElement} */ (el("input", { type: "search", placeholder: "Words of reason, change, values or log; #12", "aria-label": "Find runs", value: address.get("find") ?? "",
  oninput: later(300, () => { carry({ find: find.value, page: null }); load(); }) }));
const states = ["", "COMPLETE", "FAILED"].map((each) => /** @type {[string, string]} */ ([each, each ? each.toLowerCase() : "all"]));
const tools = el("div.tools", {}, find, choice("state", states, address.get("state") ?? "", (state) => { carry({ state, page: null }); load(); }));

export const runTableCard = section("Runs", tools, chooser, table.element, pager);
export const refreshRunTable = throttled(2000, load);

let asked = 0;
/** Whether the columns were requested. */
let hasNames = false;

async function load() {
  const mine = ++asked;
  if (!hasNames) {
    hasNames = true;
    // The direction is known once the study is.
    if (!address.get("order")) table.order(table.sort, table.sort === "value" && sign() > 0);
    nameColumns();
  }
  const page = Number(address.get("page") ?? 0);
  const query = new URLSearchParams({ study: name, sort: table.sort, order: table.descending ? "desc" : "asc", offset: String(page * PAGE), limit: String(PAGE),
    state: address.get("state") ?? "", find: address.get("find") ?? "" });
  for (const column of table.columns) if (/^(parameter_|metric_|code_)/.test(column.name)) query.append("column", column.name);
  table.element.setAttribute("aria-busy", "true");
  try {
    const answer = await api(`/api/study/runs?${query}`);
    if (mine !== asked) return;
    if (answer.best !== best) table.forget();
    best = answer.best;
    table.show(answer.runs);
    const last = Math.max(0, Math.ceil(answer.total / PAGE) - 1);
    const go = (/** @type {number} */ to) => () => { carry({ page: to ? String(to) : null }); load(); };
    refill(pager, el("span.quiet", { role: "status" }, plural(answer.total, "run")), last > 0 && [el("button.small", { type: "button", disabled: page === 0, onclick: go(page - 1) }, "previous"),
      `${page + 1} of ${last + 1}`, el("button.small", { type: "button", disabled: page >= last, onclick: go(page + 1) }, "next")]);
  } catch (error) {
    return mine === asked && failed(pager, error);
  } finally {
    if (mine === asked) table.element.removeAttribute("aria-busy");
  }
}

/** Ask for the names of values and metrics, and show the usual ones of them. */
async function nameColumns() {
  const answer = await api(studyPath(name, "run_columns")).catch(() => null);
  if (!answer) {
    hasNames = false;
    return;
  }
  const cell = (/** @type {string} */ id) => (/** @type {any} */ row) => {
    const value = row.cells[id];
    return value === null || value === undefined ? "–" : el("span.reason", {}, settingText(value));
  };
  const column = (/** @type {string} */ id, /** @type {string} */ title) => ({ name: id, title, numeric: true, cell: cell(id) });
  const { values } = answer;
  const differing = values.filter((/** @type {any} */ each) => each.differs).slice(0, FIRST_VALUES).map((/** @type {any} */ each) => `parameter_${each.name}`);
  const fixed = FIXED.filter((each) => answer.parents || !["gain", "parent"].includes(each.name)).map((each) => (each.name === "value" ? { ...each, title: study.points.about.objective } : each));
  columns = [...fixed.slice(0, 5), ...values.map((/** @type {any} */ each) => column(`parameter_${each.name}`, each.name)),
    ...answer.metrics.filter((/** @type {string} */ each) => each !== study.points.about.objective).map((/** @type {string} */ each) => column(`metric_${each}`, each)), ...fixed.slice(5)];
  usual = [...USUAL, ...differing, "seed", "seconds"];
  table.choose(shown());
  showChooser();
  load();
}

function showChooser() {
  const names = table.columns.map((column) => column.name);
  const boxes = columns.filter((column) => column.name !== "number").map((column) => {
    const box = /** @type {HTMLInputElement} */ (el("input", { type: "checkbox", value: column.name, checked: names.includes(column.name),
      onchange: () => choose(box.checked ? [...names, column.name] : names.filter((each) => each !== column.name)) }));
    return el("label", {}, box, ` ${titleOf(column)}`);
  });
  // Replaced in place, so that the list stays open.
  refill(chooser, el("summary", {}, `Columns: ${names.length} of ${columns.length}`), el("div.checks", {}, boxes),
    chosen() && el("button.small", { type: "button", onclick: () => choose(null) }, "Usual columns"));
}

/** @param {Column} column */
function titleOf(column) {
  const title = column.title ?? column.name;
  return column.name.startsWith("metric_") ? `${title} (metric)` : title;
}
