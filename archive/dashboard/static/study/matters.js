// @ts-check
/** Importance of parameters and decisions, and the value against the most important ones; absent where nothing differs. */

import { api, el, failed, fill, number, section, studyPath } from "../parts/page.js";
import { cut, svg } from "../parts/svg.js";
import { Table } from "../parts/table.js";
import { whenSeen } from "../parts/timing.js";
import { name, openNumber, sign } from "./state.js";

const [WIDTH, HEIGHT] = [180, 18];
/** Parameters that are shown at first: more would hide the slices. */
const SHOWN = 8;
const PANEL = { width: 260, height: 170, left: 52, right: 8, top: 8, bottom: 40 };

const note = el("p.quiet");
const panels = el("div.slices");
const table = new Table([
  { name: "name", title: "parameter" },
  { name: "share", title: "variance", cell: (row) => bar(row.variance), key: (row) => row.variance?.share ?? -1 },
  { name: "percent", title: "%", numeric: true, cell: (row) => percent(row.variance), key: (row) => row.variance?.share ?? -1 },
  { name: "near", title: "near best %", numeric: true, wide: true, cell: (row) => percent(row.near_best), key: (row) => row.near_best?.share ?? -1 },
  { name: "results", numeric: true, wide: true },
], { sort: "share", descending: true });

const more = /** @type {HTMLInputElement} */ (el("input", { type: "checkbox", onchange: () => showRows() }));
const moreLabel = el("label.choice");

const card = section("What matters", table.element, moreLabel, note, panels);
card.hidden = true;
/** The card is hidden until it has something to say; its place is always there, so that it can be seen. */
export const mattersPart = el("div", {}, card);
export const refreshMatters = whenSeen(mattersPart, load, 15_000);

/** @type {any[]} */
let rows = [];

/** Show the parameters that explain something, the strongest first; all on request. */
function showRows() {
  const ranked = [...rows].sort((first, second) => (second.variance?.share ?? -1) - (first.variance?.share ?? -1));
  const telling = ranked.filter((row) => row.variance?.share >= 0.0005).slice(0, SHOWN);
  moreLabel.hidden = telling.length === rows.length || !telling.length;
  fill(moreLabel, more, ` the other ${rows.length - telling.length} parameters, which explain less`);
  table.show(more.checked || !telling.length ? rows : telling);
}

async function load() {
  try {
    const found = await api(studyPath(name, "matters"));
    card.hidden = Boolean(found.nothing) || found.explained <= 0;
    if (card.hidden) return;
    rows = found.parameters;
    showRows();
    const pairs = found.pairs.slice(0, 3).map((/** @type {any} */ pair) => `${pair.first} × ${pair.second} ${percent(pair.variance)} %`);
    fill(note, `Variance is the share of the variance of ${found.objective} that a parameter explains alone, by a forest of ${found.results} results, `,
      `which explains ${Math.round(100 * found.explained)} % of results that it has not seen. Near best is how much it tells the best tenth from the others. `,
      pairs.length > 0 && `Pairs explain beyond that: ${pairs.join(", ")}. `, "A conditional parameter is judged among the results in which it exists.");
    fill(panels, ...found.slices.map(panel));
  } catch (error) {
    return failed(note, error);
  }
}

/** @param {{ share: number } | null} share */
const percent = (share) => (share ? (100 * share.share).toFixed(1) : "–");

/** @param {{ share: number, low: number, high: number } | null} share */
function bar(share) {
  if (!share) return "–";
  const text = `${percent(share)} %, 95 %: ${(100 * share.low).toFixed(1)} to ${(100 * share.high).toFixed(1)} %`;
  return svg("svg.share", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": text }, svg("title", {}, text),
    svg("rect", { x: 0, y: 4, width: Math.max(1, share.share * WIDTH), height: HEIGHT - 8 }),
    svg("line", { x1: share.low * WIDTH, x2: share.high * WIDTH, y1: HEIGHT / 2, y2: HEIGHT / 2 }));
}

/** The value against one parameter: results, and the mean prediction with the quartiles of the trees. @param {any} slice */
function panel(slice) {
  const { width, height, left, right, top, bottom } = PANEL;
  const ranked = slice.value.map((/** @type {number} */ value) => sign() * value).sort((/** @type {number} */ first, /** @type {number} */ second) => first - second);
  // A few bad results would hide all differences.
  const ends = [sign() * ranked[Math.floor(ranked.length / 20)], sign() * ranked[ranked.length - 1], ...slice.low, ...slice.high];
  const [least, most] = [Math.min(...ends), Math.max(...ends)];
  const x = (/** @type {number} */ place) => left + place * (width - left - right);
  const y = (/** @type {number} */ value) => height - bottom - ((value - least) / (most - least || 1)) * (height - top - bottom);
  const path = (/** @type {number[]} */ values) => slice.grid.map((/** @type {number} */ place, /** @type {number} */ at) => `${x(place).toFixed(1)},${y(values[at]).toFixed(1)}`);
  const title = slice.scaling === "logarithmic" ? `${slice.name}, logarithmic` : slice.name;
  const prediction = slice.scaling === "categories"
    ? slice.grid.map((/** @type {number} */ place, /** @type {number} */ at) => svg("g", {},
      svg("line.mean", { x1: x(place), x2: x(place), y1: y(slice.low[at]), y2: y(slice.high[at]) }), svg("circle.dot", { cx: x(place), cy: y(slice.mean[at]), r: 4 })))
    : [svg("polygon.band", { points: [...path(slice.low), ...path(slice.high).reverse()].join(" ") }), svg("polyline.mean", { points: path(slice.mean).join(" ") })];
  const dots = slice.value.map((/** @type {number} */ value, /** @type {number} */ at) => (value < least || value > most ? null
    : svg("circle", { cx: x(slice.places[at]), cy: y(value), r: 2.5, onclick: () => openNumber(slice.number[at]) }, svg("title", {}, `#${slice.number[at]} ${number(value)}`)))).filter(Boolean);
  const every = Math.ceil(slice.ticks.length / 5);
  const ticks = slice.ticks.filter((/** @type {any} */ _, /** @type {number} */ at) => at % every === 0);
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `value against ${title}` },
    svg("line.axis", { x1: left, x2: width - right, y1: height - bottom + 4, y2: height - bottom + 4 }),
    svg("text", { x: left - 4, y: y(most) + 8, "text-anchor": "end" }, number(most)), svg("text", { x: left - 4, y: y(least), "text-anchor": "end" }, number(least)),
    ...dots, ...prediction,
    ...ticks.map(([place, word]) => svg("text", { x: x(place), y: height - bottom + 16, "text-anchor": "middle" }, cut(word, 10))),
    svg("text.name", { x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, cut(title, 34)));
}
