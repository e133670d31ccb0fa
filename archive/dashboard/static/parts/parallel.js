// @ts-check
/**
 * Parallel coordinates: an axis for each hyperparameter, decision or size, a line for each result, coloured by its value.
 *
 * Drag along an axis to choose a range; a click on its name removes it. The arrow keys go from result to result in the
 * order of the values, and Enter opens one.
 */

import { el, fill, number, tick } from "./page.js";
import { cut, svg } from "./svg.js";

const HEIGHT = 300;
const TOP = 30;
const BOTTOM = 14;
const NARROW = 70;
const LEFT = 64;
const RIGHT = 22;
const NEAR = 10;
const LEVELS = 7;

/**
 * @typedef {object} Axis
 * @property {string} name
 * @property {string} kind hyperparameter, decision, size or objective
 * @property {string} scaling
 * @property {[number, string][]} ticks
 * @property {(number | null)[]} places from 0 at the bottom to 1 at the top
 */
/** @typedef {{ objective: string, direction: string, number: number[], value: number[], axes: Axis[] }} Parallel */
/** @typedef {Record<string, [number, number]>} Ranges chosen part of each axis, by name */

export class ParallelView {
  /**
   * @param {string} label description for readers of the screen
   * @param {object} options
   * @param {(number: number) => void} options.open called for a chosen result
   * @param {(ranges: Ranges) => void} options.ranged called after a range has changed
   * @param {Ranges} [options.ranges] ranges to begin with
   */
  constructor(label, options) {
    this.options = options;
    /** @type {Ranges} */
    this.ranges = { ...options.ranges };
    this.picture = svg("svg", { tabindex: 0, role: "img", "aria-label": label });
    this.scroll = el("div.parallel", {}, this.picture);
    this.tip = el("div.tip", { hidden: true });
    this.element = el("div.plot", {}, this.scroll, this.tip);
    /** @type {Parallel | null} */
    this.data = null;
    /** @type {SVGElement[]} */
    this.lines = [];
    this.near = -1;
    new ResizeObserver(() => this.draw()).observe(this.element);
    this.#listen();
  }

  /** @param {Parallel} data */
  show(data) {
    this.data = data;
    this.#choose(-1);
    this.draw();
  }

  draw() {
    const { data } = this;
    const room = this.element.clientWidth;
    if (!data || !room) return;
    const width = Math.max(room, LEFT + RIGHT + NARROW * (data.axes.length - 1));
    this.step = (width - LEFT - RIGHT) / Math.max(1, data.axes.length - 1);
    this.picture.setAttribute("width", String(width));
    this.picture.setAttribute("height", String(HEIGHT));
    const last = data.axes[data.axes.length - 1].places;
    const better = data.direction === "minimise" ? -1 : 1;
    this.lines = data.number.map((_, row) => {
      const place = last[row] ?? 0.5;
      const level = Math.min(LEVELS - 1, Math.floor(LEVELS * (better > 0 ? place : 1 - place)));
      return svg(`path.g${level}`, { d: this.#path(row) });
    });
    this.#filter();
    this.picture.replaceChildren(svg("g.lines", {}, ...this.lines), ...data.axes.map((axis, at) => this.#axis(axis, at)));
  }

  /** @param {number} at */
  #x(at) {
    return LEFT + at * (this.step ?? 0);
  }

  /** @param {number} place */
  #y(place) {
    return TOP + (1 - place) * (HEIGHT - TOP - BOTTOM);
  }

  /** A line has a gap where its result has no such entry. @param {number} row */
  #path(row) {
    let text = "";
    let drawn = false;
    this.data?.axes.forEach((axis, at) => {
      const place = axis.places[row];
      if (place !== null) text += `${drawn ? "L" : "M"}${this.#x(at).toFixed(1)} ${this.#y(place).toFixed(1)}`;
      drawn = place !== null;
    });
    return text;
  }

  /** @param {Axis} axis @param {number} at */
  #axis(axis, at) {
    const x = this.#x(at);
    const words = Math.max(6, Math.floor(((this.step ?? NARROW) - 14) / 6.2));
    const end = at === (this.data?.axes.length ?? 0) - 1;
    const anchor = at === 0 ? "start" : end ? "end" : "middle";
    const range = this.ranges[axis.name];
    const group = svg("g.axis", { transform: `translate(${x.toFixed(1)} 0)` },
      svg("line", { y1: this.#y(0), y2: this.#y(1) }),
      svg("text.name", { y: 12, x: at === 0 ? -LEFT + 4 : end ? RIGHT - 2 : 0, "text-anchor": anchor }, cut(axis.name, at === 0 ? words + 4 : words), svg("title", {}, axis.name)),
      ...axis.ticks.map(([place, text]) => svg("text.tick", { x: -6, y: this.#y(place), "text-anchor": "end", "dominant-baseline": "middle" },
        cut(axis.scaling === "categories" ? text : tick(Number(text)), Math.min(14, words)), svg("title", {}, text))),
      svg("rect.hold", { x: -12, width: 24, y: TOP, height: HEIGHT - TOP - BOTTOM, "data-axis": axis.name }));
    if (axis.scaling === "logarithmic") group.append(svg("text.tick", { y: 23, "text-anchor": anchor, x: at === 0 ? -LEFT + 4 : end ? RIGHT - 2 : 0 }, "logarithmic"));
    if (range) group.append(svg("rect.range", { x: -7, width: 14, y: this.#y(range[1]), height: Math.max(2, this.#y(range[0]) - this.#y(range[1])) }));
    return group;
  }

  #filter() {
    this.lines.forEach((line, row) => line.classList.toggle("out", !this.#isIn(row)));
  }

  /** Whether a result is inside all chosen ranges. @param {number} row */
  #isIn(row) {
    return (this.data?.axes ?? []).every((axis) => {
      const range = this.ranges[axis.name];
      const place = axis.places[row];
      return !range || (place !== null && place >= range[0] && place <= range[1]);
    });
  }

  #listen() {
    /** @type {{ name: string, from: number } | null} */
    let drag = null;
    const place = (/** @type {PointerEvent} */ event) => {
      const box = this.picture.getBoundingClientRect();
      return /** @type {[number, number]} */ ([event.clientX - box.left, event.clientY - box.top]);
    };
    const share = (/** @type {number} */ y) => Math.min(1, Math.max(0, 1 - (y - TOP) / (HEIGHT - TOP - BOTTOM)));
    this.picture.addEventListener("pointerdown", (event) => {
      const name = /** @type {Element} */ (event.target).getAttribute("data-axis");
      if (name === null) return;
      drag = { name, from: share(place(event)[1]) };
      this.picture.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    this.picture.addEventListener("pointermove", (event) => {
      const [x, y] = place(event);
      if (drag) this.#range(drag.name, drag.from, share(y));
      else this.#hover(x, y);
    });
    this.picture.addEventListener("pointerup", (event) => {
      const [x, y] = place(event);
      if (drag) {
        // A click removes the range.
        if (Math.abs(drag.from - share(y)) < 0.01) delete this.ranges[drag.name];
        drag = null;
        this.draw();
        this.options.ranged(this.ranges);
      } else {
        this.#hover(x, y);
        if (this.near >= 0 && this.data) this.options.open(this.data.number[this.near]);
      }
    });
    this.picture.addEventListener("pointerleave", () => this.#choose(-1));
    this.picture.addEventListener("keydown", (event) => this.#key(event));
  }

  /** @param {string} name @param {number} from @param {number} to */
  #range(name, from, to) {
    if (Math.abs(from - to) < 0.01) return;
    this.ranges[name] = [Math.min(from, to), Math.max(from, to)];
    this.draw();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (!this.data) return;
    const step = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 }[event.key];
    if (event.key === "Enter" && this.near >= 0) {
      event.preventDefault();
      this.options.open(this.data.number[this.near]);
    }
    if (event.key === "Escape") {
      this.ranges = {};
      this.#choose(-1);
      this.draw();
      this.options.ranged(this.ranges);
    }
    if (!step) return;
    event.preventDefault();
    const rows = this.data.number.map((_, row) => row).filter((row) => this.#isIn(row));
    const at = rows.indexOf(this.near);
    const next = at < 0 ? rows[rows.length - 1] : rows[(at + step + rows.length) % rows.length];
    if (next !== undefined) this.#choose(next);
  }

  /** @param {number} x @param {number} y */
  #hover(x, y) {
    if (!this.data) return;
    const position = (x - LEFT) / (this.step || 1);
    const at = Math.min(Math.max(0, Math.floor(position)), Math.max(0, this.data.axes.length - 2));
    const [left, right] = [this.data.axes[at], this.data.axes[at + 1] ?? this.data.axes[at]];
    let [best, nearest] = [NEAR, -1];
    // The best lie on top, at the end.
    for (let row = this.data.number.length - 1; row >= 0; row--) {
      const [one, two] = [left.places[row], right.places[row]];
      if (one === null || two === null || !this.#isIn(row)) continue;
      const distance = Math.abs(this.#y(one + (position - at) * (two - one)) - y);
      if (distance < best) [best, nearest] = [distance, row];
    }
    this.#choose(nearest);
  }

  /** @param {number} row */
  #choose(row) {
    if (row === this.near) return;
    this.lines[this.near]?.classList.remove("near");
    this.near = row;
    const line = this.lines[row];
    this.tip.hidden = !line;
    if (!line || !this.data) return;
    line.classList.add("near");
    line.parentNode?.append(line);
    fill(this.tip, el("b", {}, `#${this.data.number[row]}`), ` ${this.data.objective} ${number(this.data.value[row])}`);
    const place = this.data.axes[this.data.axes.length - 1].places[row] ?? 0.5;
    this.tip.style.right = "70px";
    this.tip.style.top = `${Math.max(0, this.#y(place) - 14)}px`;
  }
}
