// @ts-check
/** Configurations of a task by their means over repeats, and which differ by more than noise. */

import { api, el, failed, networkLink, number, rounded, runLink, section, studyPath } from "../parts/page.js";
import { Table } from "../parts/table.js";
import { whenSeen } from "../parts/timing.js";
import { name } from "./state.js";

const table = new Table([
  { name: "rank", numeric: true },
  { name: "mean", numeric: true, cell: (row) => el("b", {}, rounded(row.mean, row)) },
  { name: "low", title: "95 %", cell: (row) => (row.low === null ? "one run" : `${rounded(row.low, row)} to ${rounded(row.high, row)}`) },
  { name: "results", title: "runs", numeric: true },
  { name: "what", title: "best run", unsorted: true, cell: (row) => [link(row), " ", row.what ?? ""] },
  { name: "beats", title: "beats by more than noise", unsorted: true, wide: true, cell: (row) => row.beats.join(", ") || "–" },
], { sort: "rank" });
const caption = el("p.quiet");
const card = section("More than noise?", caption, table.element);
card.hidden = true;

export const leaderboardPart = el("div", {}, card);
export const refreshLeaderboard = whenSeen(leaderboardPart, load, 20_000);

/** @param {any} row */
function link(row) {
  if (row.study === null) return el("a.key", { href: networkLink(row.network) }, row.network.slice(0, 10));
  return el("a", { href: runLink(row.study, row.number) }, row.study === name ? `#${row.number}` : `${row.study} #${row.number}`);
}

async function load() {
  try {
    const answer = await api(studyPath(name, "leaderboard"));
    card.hidden = answer.rows.length === 0;
    if (card.hidden) return;
    caption.textContent = `The best of ${answer.configurations} configurations of ${answer.task} by the mean of their ${answer.objective}; runs that differ in their seeds alone are repeats.`;
    table.show(answer.rows);
  } catch (error) {
    card.hidden = false;
    return failed(caption, error);
  }
}
