// @ts-check
/**
 * Time line of workers on a canvas: a row for each slot of a worker, a bar for each trial.
 *
 * Drag to zoom into a time, double-click to see all; the arrow keys go from trial to trial, and Enter opens one.
 */

import { clock, timeTicks } from "./axes.js";
import { address, colour, el, fill, moment, onTheme, seconds } from "./page.js";

const HEAD = 24;
const ROW = 18;
const GAP = 6;

/** Outcomes with their colours, and whether a bar is hatched: the trial gave no result. */
export const OUTCOMES = {
  complete: ["--complete", false], running: ["--running", false], pruned: ["--pruned", false], failed: ["--failed", true],
  lost: ["--lost", true], returned: ["--returned", true], cancelled: ["--cancelled", true],
};

/** @typedef {{ worker: string, lane: number, study: string, number: number, architecture: string, begin: number, end: number, outcome: keyof typeof OUTCOMES }} Trial */
/** @typedef {{ now: number, workers: { id: string, lanes: number }[], trials: Trial[], cut: boolean }} Timeline */

export class TimelineView {
  /**
   * @param {string} label description for readers of the screen
   * @param {object} options
   * @param {(trial: Trial) => void} options.open called for a clicked trial
   * @param {(zoom: [number, number] | null) => void} options.zoomed called after the chosen time has changed
   * @param {[number, number] | null} [options.zoom] time to begin with
   */
  constructor(label, options) {
    this.options = options;
    this.zoom = options.zoom ?? null;
    this.canvas = /** @type {HTMLCanvasElement} */ (el("canvas", { tabindex: 0, role: "img", "aria-label": label }));
    this.tip = el("div.tip", { hidden: true });
    this.legend = el("p.legend");
    this.element = el("div", {}, this.legend, el("div.plot.timeline", {}, this.canvas, this.tip));
    /** @type {Timeline | null} */
    this.data = null;
    this.near = -1;
    this.box = { left: 0, width: 0 };
    /** @type {[number, number]} */
    this.range = [0, 1];
    /** @type {Map<string, number>} top of each worker's rows */
    this.tops = new Map();
    new ResizeObserver(() => this.draw()).observe(this.element);
    onTheme(() => this.draw());
    this.#listen();
  }

  /** @param {Timeline} data @param {[number, number] | null} extent time that is shown without a zoom; null for that of the trials */
  show(data, extent) {
    const held = this.data?.trials[this.near];
    this.data = data;
    this.extent = extent;
    this.near = held ? data.trials.findIndex((each) => each.begin === held.begin && each.study === held.study && each.number === held.number) : -1;
    if (this.near < 0) this.tip.hidden = true;
    const used = Object.keys(OUTCOMES).filter((outcome) => data.trials.some((trial) => trial.outcome === outcome));
    fill(this.legend, used.map((outcome) => el("span", {}, el(`i.swatch-${outcome}`), outcome)));
    this.draw();
  }

  draw() {
    const { data, canvas } = this;
    const width = this.element.clientWidth;
    if (!data || !width) return;
    let height = HEAD;
    this.tops.clear();
    for (const { id, lanes } of data.workers) {
      this.tops.set(id, height);
      height += lanes * ROW + GAP;
    }
    height = Math.max(height, 70);
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.scale(ratio, ratio);
    context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    const left = Math.min(170, Math.floor(width / 3.6));
    this.box = { left, width: Math.max(1, width - left - 10) };
    this.range = this.zoom ?? this.extent ?? extentOf(data);
    this.#axis(context, height);
    this.#workers(context, data, left);
    context.save();
    context.beginPath();
    context.rect(left, 0, this.box.width, height);
    context.clip();
    this.#bars(context, data);
    context.restore();
  }

  /** @param {number} time */
  #x(time) {
    return this.box.left + ((time - this.range[0]) / (this.range[1] - this.range[0])) * this.box.width;
  }

  /** @param {number} x */
  #time(x) {
    return this.range[0] + ((x - this.box.left) / this.box.width) * (this.range[1] - this.range[0]);
  }

  /** @param {Trial} trial */
  #y(trial) {
    return (this.tops.get(trial.worker) ?? 0) + trial.lane * ROW;
  }

  /** @param {CanvasRenderingContext2D} context @param {number} height */
  #axis(context, height) {
    const [begin, end] = this.range;
    context.strokeStyle = colour("--line");
    context.fillStyle = colour("--quiet");
    context.textBaseline = "top";
    context.textAlign = "center";
    for (const time of timeTicks(begin, end, Math.max(2, Math.floor(this.box.width / 76)))) {
      const x = Math.round(this.#x(time)) + 0.5;
      context.beginPath();
      context.moveTo(x, HEAD - 6);
      context.lineTo(x, height);
      context.stroke();
      context.fillText(clock(time, end - begin), Math.min(Math.max(x, this.box.left + 24), this.box.left + this.box.width - 20), 3);
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {Timeline} data @param {number} left */
  #workers(context, data, left) {
    context.textAlign = "left";
    context.textBaseline = "middle";
    for (const { id, lanes } of data.workers) {
      const top = this.tops.get(id) ?? 0;
      context.fillStyle = colour("--ink");
      context.fillText(shortened(context, id, left - 8), 0, top + (lanes * ROW) / 2);
      context.strokeStyle = colour("--line");
      context.beginPath();
      context.moveTo(0, top + lanes * ROW + GAP / 2 + 0.5);
      context.lineTo(this.box.left + this.box.width, top + lanes * ROW + GAP / 2 + 0.5);
      context.stroke();
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {Timeline} data */
  #bars(context, data) {
    const colours = Object.fromEntries(Object.entries(OUTCOMES).map(([outcome, [name]]) => [outcome, colour(String(name))]));
    const card = colour("--card");
    for (const trial of data.trials) {
      const [x0, x1] = [this.#x(trial.begin), this.#x(trial.end)];
      if (x1 < this.box.left || x0 > this.box.left + this.box.width) continue;
      const [y, w] = [this.#y(trial) + 1, Math.max(1, x1 - x0 - 0.5)];
      context.fillStyle = colours[trial.outcome];
      context.fillRect(x0, y, w, ROW - 2);
      if (OUTCOMES[trial.outcome][1] && w > 3) hatch(context, x0, y, w, ROW - 2, card);
    }
    const held = data.trials[this.near];
    if (!held) return;
    context.strokeStyle = colour("--ink");
    context.lineWidth = 2;
    context.strokeRect(this.#x(held.begin), this.#y(held), Math.max(3, this.#x(held.end) - this.#x(held.begin)), ROW);
  }

  #listen() {
    /** @type {number | null} */
    let start = null;
    const place = (/** @type {PointerEvent} */ event) => {
      const box = this.canvas.getBoundingClientRect();
      return /** @type {[number, number]} */ ([event.clientX - box.left, event.clientY - box.top]);
    };
    this.canvas.addEventListener("pointerdown", (event) => { start = place(event)[0]; });
    this.canvas.addEventListener("pointermove", (event) => this.#hover(...place(event)));
    this.canvas.addEventListener("pointerleave", () => this.#choose(-1));
    this.canvas.addEventListener("pointerup", (event) => {
      const [x, y] = place(event);
      if (start !== null && event.pointerType === "mouse" && Math.abs(x - start) > 12) {
        const ends = [this.#time(start), this.#time(x)];
        this.#zoom([Math.round(Math.min(...ends)), Math.round(Math.max(...ends))]);
      } else {
        this.#hover(x, y);
        const trial = this.data?.trials[this.near];
        if (trial) this.options.open(trial);
      }
      start = null;
    });
    this.canvas.addEventListener("dblclick", () => this.#zoom(null));
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  /** @param {[number, number] | null} zoom */
  #zoom(zoom) {
    this.zoom = zoom;
    this.draw();
    this.options.zoomed(zoom);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const trials = this.data?.trials ?? [];
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Enter" && trials[this.near]) {
      event.preventDefault();
      this.options.open(trials[this.near]);
    }
    if (event.key === "Escape") {
      this.#choose(-1);
      this.#zoom(null);
    }
    if (!step || !trials.length) return;
    event.preventDefault();
    const [begin, end] = this.range;
    const inside = trials.map((_, at) => at).filter((at) => trials[at].end >= begin && trials[at].begin <= end);
    const at = inside.indexOf(this.near);
    const next = at < 0 ? inside[inside.length - 1] : inside[(at + step + inside.length) % inside.length];
    if (next !== undefined) this.#choose(next);
  }

  /** @param {number} x @param {number} y */
  #hover(x, y) {
    let [best, nearest] = [6, -1];
    (this.data?.trials ?? []).forEach((trial, at) => {
      const top = this.#y(trial);
      if (y < top || y > top + ROW) return;
      const distance = Math.max(this.#x(trial.begin) - x, x - this.#x(trial.end), 0);
      if (distance < best) [best, nearest] = [distance, at];
    });
    this.#choose(nearest);
  }

  /** @param {number} at */
  #choose(at) {
    if (at === this.near) return;
    this.near = at;
    this.draw();
    const trial = this.data?.trials[at];
    this.tip.hidden = !trial;
    if (!trial) return;
    fill(this.tip, el("b", {}, `${trial.study} #${trial.number}`), el("div", {}, `${trial.outcome}, ${seconds((trial.end - trial.begin) / 1000)}`),
      el("div", {}, `from ${moment(trial.begin)}`), el("div", {}, trial.worker));
    const middle = (Math.max(this.#x(trial.begin), this.box.left) + Math.min(this.#x(trial.end), this.box.left + this.box.width)) / 2;
    const right = middle > this.element.clientWidth / 2;
    this.tip.style.left = right ? "" : `${middle + 8}px`;
    this.tip.style.right = right ? `${Math.max(0, this.element.clientWidth - middle + 8)}px` : "";
    this.tip.style.top = `${this.#y(trial) + ROW + 4}px`;
  }
}

/** Time that the address names by `from` and `to`. @returns {[number, number] | null} */
export function zoomOfAddress() {
  const [from, to] = [Number(address.get("from")), Number(address.get("to"))];
  return from > 0 && from < to ? [from, to] : null;
}

/** @param {Timeline} data @returns {[number, number]} */
function extentOf(data) {
  let [begin, end] = [Infinity, -Infinity];
  for (const trial of data.trials) [begin, end] = [Math.min(begin, trial.begin), Math.max(end, trial.end)];
  return begin < end ? [begin, end] : [data.now - 60_000, data.now];
}

/** The end of a text that fits: names of workers differ there. @param {CanvasRenderingContext2D} context @param {string} text @param {number} room */
function shortened(context, text, room) {
  let shown = text;
  while (shown.length > 3 && context.measureText(shown).width > room) shown = `…${shown.slice(shown.startsWith("…") ? 2 : 1)}`;
  return shown;
}

/** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y @param {number} w @param {number} h @param {string} ink */
function hatch(context, x, y, w, h, ink) {
  context.save();
  context.beginPath();
  context.rect(x, y, w, h);
  context.clip();
  context.strokeStyle = ink;
  context.lineWidth = 1.5;
  context.beginPath();
  for (let at = x - h; at < x + w; at += 6) {
    context.moveTo(at, y + h);
    context.lineTo(at + h, y);
  }
  context.stroke();
  context.restore();
}
