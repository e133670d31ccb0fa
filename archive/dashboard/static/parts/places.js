// @ts-check
/** Networks of a space as points: similar ones are close, groups have names, and a search is a path from best to best. */

import { el, failed, fill, isDark, networkLink, number, plainWord, request, seconds } from "./page.js";
import { Player } from "./player.js";
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
  /** @param {number} height @param {(chosen: number[]) => void} [chosen] called with the networks that were chosen: enclosed, or by an entry of the legend */
  constructor(height, chosen) {
    /** @type {any} */
    this.map = null;
    this.colour = "study";
    /** What is said where no network has a value. */
    this.hint = "";
    this.onChosen = chosen;
    /** @type {any} */
    this.base = null;
    /** @type {Set<number>} */
    this.chosen = new Set();
    this.plot = new Scatter("Map of the networks", { describe: (at) => this.#describe(at), open: (at) => { location.href = networkLink(this.keyOf(at)); }, height,
      ...(chosen ? { enclosed: (all) => this.choose(all), picked: (at) => this.choose(this.chosen.has(at) ? [...this.chosen].filter((each) => each !== at) : [...this.chosen, at]) } : {}) });
    this.note = el("p.quiet");
    this.legend = el("p.legend");
    this.groups = el("p.legend");
    this.player = new Player((step) => this.#draw(step));
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
    const query = new URLSearchParams([["space", space], ["distance", distance], ["colour", this.colour], ...studies.map((name) => ["study", name])]);
    try {
      let answer = await request(`/api/map?${query}`);
      while (answer.status === 202 && mine === this.asked) {
        this.#showProgress(await answer.json(), distance);
        answer = await request(`/api/map?${query}`);
      }
      if (mine !== this.asked) return;
      const map = readTable(await answer.arrayBuffer());
      // Other places: a part of the last map is no part of this one.
      if (map.head.space !== this.map?.head.space || map.head.distance !== this.map.head.distance) this.plot.zoom = null;
      this.map = map;
      this.chosen = new Set();
      this.#show();
    } catch (error) {
      if (mine === this.asked) failed(this.note, error);
    }
  }

  /** Whether the colours are kinds rather than values. */
  get #kinds() {
    const { head } = this.map;
    return this.colour !== "value" && (this.colour === "study" && head.paths.length ? head.paths.length > 0 : head.kinds.length > 0);
  }

  /** The number of the kind of each network, from 1, and the kinds. @returns {{ kind: Uint8Array, names: string[] }} */
  #kindsOf() {
    const { head, columns } = this.map;
    if (this.colour === "study" && head.paths.length) return { kind: columns.study, names: head.paths.map((/** @type {any} */ path) => path.study) };
    return { kind: columns.kind, names: head.kinds.map((/** @type {any} */ each) => each.name) };
  }

  #show() {
    const { head } = this.map;
    this.base = this.#prepare();
    const steps = Math.max(0, ...head.paths.map((/** @type {any} */ path) => path.at.length));
    const gains = this.base.gains.flat().map((/** @type {number} */ row) => row + 1);
    this.player.load(steps, [...new Set(/** @type {number[]} */ (gains))].sort((first, second) => first - second));
    this.#draw(steps);
    const meaning = head.paths.length ? "A line leads from best to best of a search."
      : head.objective && this.colour === "value" ? `The colour is the best published top-1 accuracy on ${head.objective}.` : this.#kinds && this.colour !== "study" ? "" : this.hint;
    const named = head.regions.length ? " Names say what the networks around them share." : "";
    fill(this.note, `${head.rows} networks of ${head.space}; near means similar: the two axes have ${Math.round(100 * head.kept)} % of the variance of the distances by ${plainWord("distances", head.distance)}.${named} ${meaning}`);
  }

  /** What does not change while a search is played: the colours, and the order in which points are drawn. */
  #prepare() {
    const { head, columns } = this.map;
    const values = columns.value;
    const minimise = head.direction === "minimise";
    const [low, high] = extent(values, minimise);
    const kinds = this.#kinds ? this.#kindsOf() : null;
    const kind = kinds ? Uint8Array.from(kinds.kind) : new Uint8Array(head.rows);
    for (let at = 0; !kinds && at < head.rows; at++) {
      if (values[at] === values[at]) kind[at] = 1 + level(values[at], low, high, minimise);
    }
    /** @type {number[][]} */
    const members = Array.from({ length: 256 }, () => []);
    kind.forEach((each, at) => members[each].push(at));
    // On top are the best values, or the rarest kind.
    const [without, ...others] = members;
    if (kinds) others.sort((first, second) => second.length - first.length);
    const gains = head.paths.map((/** @type {any} */ path) => gainsOf(path, head.direction));
    return { kinds, kind, low, high, gains, order: [without, ...others].flat(), shown: new Uint8Array(head.rows).fill(1) };
  }

  /** Draw the map, with as many results of each search. @param {number} step */
  #draw(step) {
    const { head, columns } = this.map;
    const { kinds, kind, order, shown, low, high, gains } = this.base;
    const byKind = Boolean(kinds);
    const whole = step >= this.player.steps;
    const faint = this.#faint(step, whole);
    const palette = ["--none", ...(byKind ? COLOURS : LEVELS)];
    const lines = [];
    let star;
    for (const [place, path] of head.paths.entries()) {
      const points = gains[place].filter((/** @type {number} */ row) => row < step).map((/** @type {number} */ row) => path.at[row]);
      lines.push({ points, kind: byKind && this.colour === "study" ? COLOURS[place % MOST] : "--ink", step: false });
      if (points.length && head.paths.length === 1) star = points[points.length - 1];
    }
    this.plot.show({ x: columns.x, y: columns.y, kind, shown, xTitle: "", yTitle: "", bare: true, palette, lines, star, order, outlined: byKind ? 0 : 2, ...(faint ? { faint } : {}),
      labels: head.regions.map((/** @type {any} */ region) => ({ x: region.x, y: region.y, text: region.name })) });
    this.player.say(this.#sayStep(step));
    this.#showLegend(kinds, low, high);
  }

  /** What is pale: the networks that were not chosen, or not evaluated yet. @param {number} step @param {boolean} whole */
  #faint(step, whole) {
    const { head } = this.map;
    if (whole && !this.chosen.size) return null;
    const faint = new Uint8Array(head.rows).fill(1);
    if (whole) for (const at of this.chosen) faint[at] = 0;
    else for (const { at } of head.paths) for (let row = 0; row < Math.min(step, at.length); row++) faint[at[row]] = 0;
    return faint;
  }

  /** @param {number} step */
  #sayStep(step) {
    const { head } = this.map;
    return head.paths.map((/** @type {any} */ path, /** @type {number} */ place) => {
      const best = this.base.gains[place].filter((/** @type {number} */ row) => row < step).pop();
      const text = best === undefined ? "no value yet" : `best ${head.objective} ${number(path.values[best])} by #${path.numbers[best]}`;
      return `${head.paths.length > 1 ? `${path.study}: ` : ""}${Math.min(step, path.at.length)} of ${path.at.length}, ${text}`;
    }).join("; ");
  }

  /** Choose networks: the others become pale. @param {number[]} chosen */
  choose(chosen) {
    this.chosen = new Set(chosen);
    this.#draw(this.player.step);
    this.onChosen?.([...this.chosen]);
  }

  /** An entry of a legend, which chooses its networks where a page has a place for them. @param {any[]} content @param {(at: number) => boolean} isOf */
  #entry(content, isOf) {
    if (!this.onChosen) return el("span", {}, content);
    const all = () => Array.from({ length: this.map.head.rows }, (_, at) => at).filter(isOf);
    return el("button.entry", { type: "button", title: "Choose these networks", onclick: () => this.choose(all()) }, content);
  }

  /** @param {{ kind: Uint8Array, names: string[] } | null} kinds @param {number} low @param {number} high */
  #showLegend(kinds, low, high) {
    const { head, columns } = this.map;
    const key = JSON.stringify([kinds?.names, low, high, this.asked]);
    // The focus stays on its entry while a search is played.
    if (this.legend.dataset.key === key) return;
    this.legend.dataset.key = key;
    fill(this.groups, head.regions.map((/** @type {any} */ region, /** @type {number} */ at) => this.#entry([`${region.name} (${region.count})`], (row) => columns.region[row] === at + 1)));
    const without = (/** @type {string} */ text) => el("span", {}, el("i.swatch-none"), text);
    if (kinds) {
      const counts = new Uint32Array(256);
      for (let at = 0; at < head.rows; at++) counts[kinds.kind[at]]++;
      fill(this.legend, kinds.names.map((name, at) => this.#entry([el(`i.swatch-${at % COLOURS.length}`), `${name} (${counts[at + 1]})`], (row) => kinds.kind[row] === at + 1)),
        counts[0] > 0 && without(this.colour === "study" ? "not evaluated there" : `without a ${this.colour}`));
      return;
    }
    if (low > high) {
      fill(this.legend);
      return;
    }
    const minimise = head.direction === "minimise";
    const [worst, best] = minimise ? [high, low] : [low, high];
    const unit = head.paths.length ? head.objective : `top-1 on ${head.objective} (%)`;
    const third = (/** @type {number} */ step, /** @type {number} */ row) => columns.value[row] === columns.value[row] && [0, 0, 3, 3, 3, 6, 6][level(columns.value[row], low, high, minimise)] === step;
    fill(this.legend, el("span", {}, unit), [[0, `${number(worst)} or worse`], [3, number((low + high) / 2)], [6, number(best)]].map(([step, value]) => this.#entry([el(`i.swatch-g${step}`), value], (row) => third(Number(step), row))),
      without(head.paths.length ? "not evaluated there" : "without a result"));
  }

  /** @param {{ share: number, seconds: number, limit: number }} job @param {string} distance */
  #showProgress({ share, seconds: spent, limit }, distance) {
    const left = share > 0.02 ? `, about ${seconds(Math.ceil((spent * (1 - share)) / share))} left` : "";
    fill(this.note, el("progress", { value: share, max: 1, "aria-label": "places of the networks" }),
      ` ${Math.round(100 * share)} % of the places by ${plainWord("distances", distance)}${left}; ends after ${seconds(limit)}.`);
  }

  /** @param {number} at */
  keyOf(at) {
    return [0, 1, 2, 3].map((word) => this.map.columns[`key${word}`][at].toString(16).padStart(8, "0")).join("");
  }

  /** @param {number} at */
  #describe(at) {
    const { head, columns } = this.map;
    const value = columns.value[at];
    const owner = head.paths[columns.study[at] - 1]?.study ?? head.kinds[columns.kind[at] - 1]?.name;
    const key = this.keyOf(at);
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

/** Rows of a search at which its best value improved. @param {{ values: (number | null)[] }} path @param {string} direction @returns {number[]} */
export function gainsOf(path, direction) {
  const sign = direction === "minimise" ? -1 : 1;
  let best = -Infinity;
  return path.values.flatMap((value, row) => {
    if (value === null || !(sign * value > best)) return [];
    best = sign * value;
    return [row];
  });
}

/** @param {number} value @param {number} low @param {number} high @param {boolean} minimise */
function level(value, low, high, minimise) {
  // A single value is the best one.
  if (!(high > low)) return 6;
  const share = Math.max(0, Math.min(6, Math.floor((7 * (value - low)) / (high - low))));
  return minimise ? 6 - share : share;
}

/** Worst and best of the scale of colours: a few bad networks do not take its whole width. @param {Float64Array} values @param {boolean} minimise @returns {[number, number]} */
function extent(values, minimise) {
  const present = values.filter((value) => Number.isFinite(value)).sort();
  const rank = Math.floor(OUTLIERS * (present.length - 1));
  if (!present.length) return [Infinity, -Infinity];
  return minimise ? [present[0], present[present.length - 1 - rank]] : [present[rank], present[present.length - 1]];
}
