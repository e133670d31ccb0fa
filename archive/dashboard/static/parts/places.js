// @ts-check
/** Networks of a space as points: similar ones are close, and a search is a line from best to best. */

import { el, failed, fill, isDark, networkLink, number, plainWord, request, seconds } from "./page.js";
import { readTable } from "./points.js";
import { COLOURS, Scatter } from "./scatter.js";

const LEVELS = ["--g0", "--g1", "--g2", "--g3", "--g4", "--g5", "--g6"];
/** Milliseconds after which a picture is drawn for the point under the pointer. */
const REST = 200;
/** Share of the worst networks that have the last colour. */
const OUTLIERS = 0.05;
/** Most searches on one map. */
export const MOST = COLOURS.length - 1;

export class Places {
  /** @param {number} height */
  constructor(height) {
    /** @type {any} */
    this.map = null;
    this.colour = "study";
    /** What is said where no network has a value. */
    this.hint = "";
    this.plot = new Scatter("Map of the networks", { describe: (at) => this.#describe(at), open: (at) => { location.href = networkLink(this.#keyOf(at)); }, height });
    this.note = el("p.quiet");
    this.legend = el("p.legend");
    this.asked = 0;
  }

  get element() {
    return this.plot.element;
  }

  /**
   * Show the networks of a space; while their places are computed, the share that is done.
   * @param {string} space @param {string} distance @param {string[]} studies
   */
  async load(space, distance, studies) {
    const mine = ++this.asked;
    const query = new URLSearchParams([["space", space], ["distance", distance], ...studies.map((name) => ["study", name])]);
    try {
      let answer = await request(`/api/map?${query}`);
      while (answer.status === 202 && mine === this.asked) {
        this.#showProgress(await answer.json(), distance);
        answer = await request(`/api/map?${query}`);
      }
      if (mine !== this.asked) return;
      this.map = readTable(await answer.arrayBuffer());
      this.show(this.colour);
    } catch (error) {
      failed(this.note, error);
    }
  }

  /** @param {string} by "value", or "study" where there are searches */
  show(by) {
    this.colour = by;
    if (!this.map) return;
    const { head, columns } = this.map;
    const byStudy = by === "study" && head.paths.length > 0;
    const values = columns.value;
    const [low, high] = extent(values, head.direction === "minimise");
    const kind = new Uint8Array(head.rows);
    for (let at = 0; at < head.rows; at++) {
      if (byStudy) kind[at] = columns.study[at];
      else kind[at] = values[at] === values[at] ? 1 + level(values[at], low, high, head.direction === "minimise") : 0;
    }
    const palette = ["--none", ...(byStudy ? COLOURS.slice(0, MOST) : LEVELS)];
    this.plot.show({ x: columns.x, y: columns.y, kind, shown: new Uint8Array(head.rows).fill(1), xTitle: "", yTitle: "", bare: true, palette,
      lines: head.paths.map((/** @type {any} */ path, /** @type {number} */ at) => ({ points: path.incumbents, kind: byStudy ? COLOURS[at % MOST] : "--ink", step: false })) });
    const meaning = head.paths.length ? "A line leads from best to best of a search."
      : head.objective ? `The colour is the best published top-1 accuracy on ${head.objective}.` : this.hint;
    fill(this.note, `${head.rows} networks of ${head.space}; near means similar: the two axes have ${Math.round(100 * head.kept)} % of the variance of the distances by ${plainWord("distances", head.distance)}. ${meaning}`);
    this.#showLegend(byStudy, low, high);
  }

  /** @param {boolean} byStudy @param {number} low @param {number} high */
  #showLegend(byStudy, low, high) {
    const { head } = this.map;
    const without = el("span", {}, el("i.swatch-none"), byStudy || head.paths.length ? "not evaluated there" : "without a result");
    if (byStudy) {
      fill(this.legend, head.paths.map((/** @type {any} */ path, /** @type {number} */ at) => el("span", {}, el(`i.swatch-${at % MOST}`), path.study)), without);
      return;
    }
    if (low > high) {
      fill(this.legend);
      return;
    }
    const [worst, best] = head.direction === "minimise" ? [high, low] : [low, high];
    const unit = head.paths.length ? head.objective : `top-1 on ${head.objective} (%)`;
    fill(this.legend, el("span", {}, unit), [[0, `${number(worst)} or worse`], [3, number((low + high) / 2)], [6, number(best)]].map(([step, value]) => el("span", {}, el(`i.swatch-g${step}`), value)), without);
  }

  /** @param {{ share: number, seconds: number, limit: number }} job @param {string} distance */
  #showProgress({ share, seconds: spent, limit }, distance) {
    const left = share > 0.02 ? `, about ${seconds(Math.ceil((spent * (1 - share)) / share))} left` : "";
    fill(this.note, el("progress", { value: share, max: 1, "aria-label": "places of the networks" }),
      ` ${Math.round(100 * share)} % of the places by ${plainWord("distances", distance)}${left}; ends after ${seconds(limit)}.`);
  }

  /** @param {number} at */
  #keyOf(at) {
    return [0, 1, 2, 3].map((word) => this.map.columns[`key${word}`][at].toString(16).padStart(8, "0")).join("");
  }

  /** @param {number} at */
  #describe(at) {
    const { head, columns } = this.map;
    const value = columns.value[at];
    const owner = head.paths[columns.study[at] - 1]?.study;
    const key = this.#keyOf(at);
    const image = /** @type {HTMLImageElement} */ (el("img.glimpse", { alt: "" }));
    // Of a deep network, the first layers are legible.
    image.onload = () => image.classList.toggle("deep", image.naturalHeight > 2 * image.naturalWidth);
    // Only where the pointer rests.
    setTimeout(() => {
      if (image.isConnected) image.src = `/networks/${key}.svg?theme=${isDark() ? "dark" : "light"}`;
    }, REST);
    return [el("b", {}, head.models[at] || key.slice(0, 10)), value === value ? el("div", {}, `${head.objective} ${number(value)}`) : null, owner ? el("div", {}, owner) : null, image].filter(Boolean);
  }
}

/** @param {number} value @param {number} low @param {number} high @param {boolean} minimise */
function level(value, low, high, minimise) {
  const share = Math.max(0, Math.min(6, Math.floor((7 * (value - low)) / (high - low || 1))));
  return minimise ? 6 - share : share;
}

/** Worst and best of the scale of colours: a few bad networks do not take its whole width. @param {Float64Array} values @param {boolean} minimise @returns {[number, number]} */
function extent(values, minimise) {
  const present = values.filter((value) => Number.isFinite(value)).sort();
  const rank = Math.floor(OUTLIERS * (present.length - 1));
  if (!present.length) return [Infinity, -Infinity];
  return minimise ? [present[0], present[present.length - 1 - rank]] : [present[rank], present[present.length - 1]];
}
