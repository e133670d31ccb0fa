// @ts-check
/** All networks of a space as a map: similar ones are close, and searches are paths over it. */

import { address, api, carry, choice, el, failed, fill, networkLink, number, plainWord, request, seconds, section, view } from "../parts/page.js";
import { readTable } from "../parts/points.js";
import { COLOURS, Scatter } from "../parts/scatter.js";

const LEVELS = ["--g0", "--g1", "--g2", "--g3", "--g4", "--g5", "--g6"];
const MOST = COLOURS.length - 1;

/** @type {any} */
let map = null;
const plot = new Scatter("Map of the networks", { describe, open: (at) => { location.href = networkLink(keyOf(at)); }, height: 560 });
const tools = el("div.tools");
const note = el("p.quiet");
const legend = el("p.legend");
const studyBoxes = el("div.checks");

/** @param {number} at */
function keyOf(at) {
  return [0, 1, 2, 3].map((word) => map.columns[`key${word}`][at].toString(16).padStart(8, "0")).join("");
}

/** @param {number} at */
function describe(at) {
  const value = map.columns.value[at];
  const owner = map.head.paths[map.columns.study[at] - 1]?.study;
  return [el("b", {}, keyOf(at).slice(0, 10)), value === value ? el("div", {}, `${map.head.objective} ${number(value)}`) : null, owner ? el("div", {}, owner) : null].filter(Boolean);
}

function show() {
  const { head, columns } = map;
  const published = !head.paths.length && head.objective;
  const by = address.get("colour") ?? (published ? "value" : "study");
  const values = columns.value;
  const [low, high] = extent(values);
  const kind = new Uint8Array(head.rows);
  for (let at = 0; at < head.rows; at++) {
    if (by === "study") kind[at] = columns.study[at];
    else kind[at] = values[at] === values[at] ? 1 + Math.min(6, Math.floor((7 * (values[at] - low)) / (high - low || 1))) : 0;
  }
  const palette = ["--none", ...(by === "study" ? COLOURS.slice(0, MOST) : LEVELS)];
  plot.show({ x: columns.x, y: columns.y, kind, shown: new Uint8Array(head.rows).fill(1), xTitle: "", yTitle: "", bare: true, palette,
    lines: head.paths.map((/** @type {any} */ path, /** @type {number} */ at) => ({ points: path.incumbents, kind: by === "study" ? COLOURS[at % MOST] : "--ink", step: false })) });
  fill(note, `${head.rows} networks of ${head.space}; the two axes have ${Math.round(100 * head.kept)} % of the variance of the distances by ${plainWord("distances", head.distance)}. ${head.paths.length ? "A line leads from best to best of a search." : published ? `The colour is the best published top-1 accuracy on ${head.objective}.` : "Choose a search below to see its path."}`);
  fill(legend, by === "study" ? head.paths.map((/** @type {any} */ path, /** @type {number} */ at) => el("span", {}, el(`i.swatch-${at % MOST}`), path.study))
    : [[0, low], [3, (low + high) / 2], [6, high]].map(([level, value]) => el("span", {}, el(`i.swatch-g${level}`), number(value))), (by === "value" || head.paths.length > 0) && el("span", {}, el("i.swatch-none"), "not evaluated there"));
}

/** @param {Float64Array} values @returns {[number, number]} */
function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low > high ? [0, 1] : [low, high];
}

/** Number of the latest request. */
let asked = 0;
const distance = () => address.get("distance") ?? "profile";

/** @param {{ share: number, seconds: number, limit: number }} job */
function showProgress({ share, seconds: spent, limit }) {
  const left = share > 0.02 ? `, about ${seconds(Math.ceil((spent * (1 - share)) / share))} left` : "";
  fill(note, el("progress", { value: share, max: 1, "aria-label": "places of the networks" }),
    ` ${Math.round(100 * share)} % of the places by ${plainWord("distances", distance())}${left}; ends after ${seconds(limit)}.`);
}

/** @param {any} choices */
async function load(choices) {
  const chosen = address.getAll("study").slice(0, MOST);
  const known = new Map(choices.studies.map((/** @type {any} */ each) => [each.study, each]));
  const space = known.get(chosen[0])?.space ?? address.get("space") ?? choices.spaces[0].space;
  fill(tools, choice("space", choices.spaces.map((/** @type {any} */ each) => [each.space, `${each.space} (${each.networks})`]), space, (value) => { location.search = `?space=${encodeURIComponent(value)}`; }),
    choice("colour", [["study", "study"], ["value", "value"]], address.get("colour") ?? "study", (value) => { carry({ colour: value }); if (map) show(); }),
    choice("distance", choices.distances.map((/** @type {string} */ each) => [each, plainWord("distances", each)]), distance(), (value) => { carry({ distance: value === "profile" ? null : value, space }); load(choices); }));
  const boxes = choices.studies.filter((/** @type {any} */ each) => each.space === space).map((/** @type {any} */ each) => {
    const box = /** @type {HTMLInputElement} */ (el("input", { type: "checkbox", value: each.study, checked: chosen.includes(each.study), onchange: () => {
      const kept = address.getAll("study").filter((name) => name !== each.study);
      address.delete("study");
      for (const name of box.checked ? [...kept, each.study] : kept) address.append("study", name);
      carry({ space });
      load(choices);
    } }));
    return el("label", {}, box, ` ${each.study} `, el("span.quiet", {}, each.objective));
  });
  fill(studyBoxes, boxes);
  try {
    const mine = ++asked;
    const query = new URLSearchParams([["space", space], ["distance", distance()], ...chosen.map((name) => ["study", name])]);
    let answer = await request(`/api/map?${query}`);
    while (answer.status === 202 && mine === asked) {
      showProgress(await answer.json());
      answer = await request(`/api/map?${query}`);
    }
    if (mine !== asked) return;
    map = readTable(await answer.arrayBuffer());
    show();
  } catch (error) {
    failed(note, error);
  }
}

async function start() {
  try {
    const choices = await api("/api/map/choices");
    if (!choices.spaces.length) {
      fill(view, section("Map", el("p.quiet", {}, "No network yet.")));
      return;
    }
    fill(note, "Computing the places of the networks …");
    fill(view, section("Map of networks", tools, legend, plot.element, note), section("Searches on the map", studyBoxes));
    await load(choices);
  } catch (error) {
    failed(view, error);
  }
}

start();
