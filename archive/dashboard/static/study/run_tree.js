// @ts-check
/**
 * The tree of the runs: which one is a change of which, the way to the best one first.
 *
 * The way to the best run of a tree is not indented; what else was tried from a run is folded below it. The server makes
 * the rows, so that a tree of a hundred thousand runs costs the page no more than one of thirty.
 *
 * Keys: up and down go from row to row, right opens and left closes what is folded, Enter opens the run.
 */

import { api, badge, el, failed, fill, number, plural, runLink, section, studyPath } from "../parts/page.js";
import { whenSeen } from "../parts/timing.js";
import { gainText, stepItems } from "../run/words.js";
import { name } from "./state.js";

/** Runs whose other changes are open, and those that show all of them, and all of their line. @type {{ open: Set<number>, whole: Set<number>, trees: boolean }} */
const opened = { open: new Set(), whole: new Set(), trees: false };
/** The last answer. @type {any} */
let answer = null;
/** Key of the row that the keyboard reaches. */
let current = "";

const caption = el("p.quiet");
const tree = el("div.tree", { role: "tree", "aria-label": "Runs below the run that they are a change of" });
const more = el("p");
const problem = el("p");
const card = section("Who came from whom", caption, tree, more, problem);
card.hidden = true;

/** The card is absent where no run has a parent; its place is there, so that it can be seen. */
export const runTreePart = el("div", {}, card);
export const refreshRunTree = whenSeen(runTreePart, load, 5000);

tree.addEventListener("keydown", onKey);
tree.addEventListener("focusin", (event) => reach(/** @type {HTMLElement} */ (event.target).closest("[role=treeitem]")));

let requests = 0;

async function load() {
  const mine = ++requests;
  const query = new URLSearchParams([["study", name], ...[...opened.open].map((each) => ["open", String(each)]), ...[...opened.whole].map((each) => ["whole", String(each)]),
    ["trees", opened.trees ? "all" : "first"]]);
  try {
    const rows = await api(`${studyPath(name, "run_tree").split("?")[0]}?${query}`);
    // A later request has opened or closed more.
    if (mine !== requests) return;
    answer = rows;
    show();
    fill(problem);
  } catch (error) {
    return mine === requests && failed(problem, error);
  }
}

function show() {
  card.hidden = answer.rows.length === 0;
  if (card.hidden) return;
  const hasFocus = tree.contains(document.activeElement);
  fill(caption, summary());
  const scroll = tree.scrollTop;
  fill(tree, answer.rows.map(rowOf));
  tree.scrollTop = scroll;
  const items = itemsOf();
  const item = items.find((each) => each.dataset.key === current) ?? items[0];
  reach(item);
  if (hasFocus) item.focus({ preventScroll: true });
  const others = answer.trees - answer.shown;
  fill(more, others > 0 && el("button.small", { type: "button", onclick: () => { opened.trees = true; load(); } }, `Show ${plural(others, "further tree")}`),
    answer.cut && "More rows than the page shows: close some of them.");
}

function summary() {
  const lone = answer.lone ? ` ${plural(answer.lone, "run")} ${answer.lone === 1 ? "has" : "have"} no parent and no change.` : "";
  return `${plural(answer.runs - answer.lone, "run")} in ${plural(answer.trees, "tree")}. A run is a change of the one above it on its line; what was tried beside it is indented.${lone}`;
}

/** @param {any} row @param {number} at @returns {HTMLElement} */
function rowOf(row, at) {
  const key = `${row.kind} ${row.number ?? row.of}`;
  const item = (/** @type {Record<string, any>} */ attributes, /** @type {any[]} */ ...children) => {
    const element = el(`div.node${row.level === 1 ? ".way" : ""}${row.kind === "run" && row.number === answer.best ? ".shown" : ""}`, { role: "treeitem", tabindex: -1, "aria-level": row.level, dataset: { key }, ...attributes }, ...children);
    // A deep tree is indented no further than a phone is wide.
    element.style.setProperty("--level", String(Math.min(row.level, 9) - 1));
    return element;
  };
  if (row.kind !== "run") return item({ onclick: () => unfold(row) }, el("span.twisty", { "aria-hidden": "true" }, "▸"), el("span.quiet", {}, row.kind === "fold" ? `${plural(row.runs, "step")} between` : `${plural(row.runs, "further change")}`));
  const first = answer.rows[at - 1];
  const below = row.level > 1 && !(first?.kind === "run" && first.number === row.parent_number);
  return item({ ...(row.below ? { "aria-expanded": String(row.opened) } : {}), onclick: (/** @type {MouseEvent} */ event) => { if (!(/** @type {HTMLElement} */ (event.target)).closest("a")) toggle(row); } },
    el("span.twisty", { "aria-hidden": "true" }, row.below ? (row.opened ? "▾" : "▸") : ""),
    el("a.tight", { href: runLink(name, row.number), tabindex: -1 }, row.number === answer.best ? el("i.star", {}, "★ ") : null, `#${row.number}`),
    el("span.number", {}, row.value === null ? badge(row.state) : el(row.number === answer.best ? "b.best" : "b", {}, number(row.value))),
    el("span.number", {}, gainText(row.gain) ?? ""),
    el("span.what", {}, stepItems(row), row.motivation && el("span.because", {}, row.motivation), below && row.parent_number !== null && el("span.quiet", {}, `of #${row.parent_number}`),
      row.below > 0 && !row.opened && el("span.quiet", {}, row.goal === null ? `· ${plural(row.below, "other run")} from it` : `· ${plural(row.below, "run")} from it, best #${row.goal}`)));
}

/** @param {any} row */
function toggle(row) {
  if (!row.below) return;
  if (!opened.open.delete(row.number)) opened.open.add(row.number);
  current = `run ${row.number}`;
  load();
}

/** @param {any} row */
function unfold(row) {
  opened.whole.add(row.of);
  current = `run ${row.of}`;
  load();
}

const itemsOf = () => [...tree.children].map((each) => /** @type {HTMLElement} */ (each));

/** Let Tab reach this row alone. @param {HTMLElement | null} item */
function reach(item) {
  if (!item) return;
  for (const each of tree.querySelectorAll("[tabindex='0'][role=treeitem]")) each.setAttribute("tabindex", "-1");
  item.setAttribute("tabindex", "0");
  current = item.dataset.key ?? "";
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  const item = /** @type {HTMLElement} */ (event.target).closest("[role=treeitem]");
  if (!(item instanceof HTMLElement) || event.ctrlKey || event.metaKey || event.altKey) return;
  const items = itemsOf();
  const at = items.indexOf(item);
  const row = answer.rows[at];
  const isOpen = item.getAttribute("aria-expanded") === "true";
  const go = (/** @type {number} */ to) => items[Math.min(items.length - 1, Math.max(0, to))].focus();
  if (event.key === "ArrowDown") go(at + 1);
  else if (event.key === "ArrowUp") go(at - 1);
  else if (event.key === "Home") go(0);
  else if (event.key === "End") go(items.length - 1);
  else if (event.key === "ArrowRight" && row.kind !== "run") unfold(row);
  else if (event.key === "ArrowRight" && row.below) isOpen ? go(at + 1) : toggle(row);
  else if (event.key === "ArrowLeft" && isOpen) toggle(row);
  else if (event.key === "ArrowLeft") go(items.findLastIndex((_, place) => place < at && answer.rows[place].level < row.level));
  else if (event.key === "Enter" && row.kind === "run") location.href = runLink(name, row.number);
  else if (event.key === "Enter") unfold(row);
  else return;
  event.preventDefault();
}
