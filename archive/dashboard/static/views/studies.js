// @ts-check
/** The list of studies. */

import { badge, el, fill, isLimited, number, seconds, section, studyAnchor, studyLink, view } from "../parts/page.js";
import { follow } from "../parts/live.js";
import { Table } from "../parts/table.js";

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
], { link: (row) => studyLink(row.name), sort: "created", descending: true,
  empty: "No study yet. Start one with: archive search --agent nasbot" });

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

function show() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = [...studies.values()].filter((row) => {
    const text = `${row.name} ${row.task} ${row.space} ${row.agent} ${row.objective} ${(row.tags ?? []).join(" ")}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  rows.sort((first, second) => (second.created ?? 0) - (first.created ?? 0));
  const total = rows.reduce((sum, row) => sum + evaluated(row), 0);
  const reused = rows.reduce((sum, row) => sum + (row.answered ?? 0), 0);
  fill(summary, `${counted(rows.length, "study", "studies")}, ${counted(total, "evaluation", "evaluations")}`, reused ? `, ${reused} of them answered without a training` : "");
  table.show(rows);
}

fill(view, section("Studies", el("div.tools", {}, filter, summary), table.element));
follow({ studies: "" }, (news) => {
  if (news.studies?.whole) studies.clear();
  for (const [name, study] of Object.entries(news.studies?.studies ?? {})) {
    if (study) studies.set(name, study);
    else studies.delete(name);
  }
  show();
});
