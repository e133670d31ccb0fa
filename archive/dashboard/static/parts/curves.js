// @ts-check
/** Curves of trainings, by uPlot. */

import uPlot from "../vendor/uplot/uPlot.esm.js";
import { colour, el, number, onTheme, tick } from "./page.js";
import { COLOURS } from "./scatter.js";

/**
 * @typedef {object} Curve
 * @property {string} label
 * @property {ArrayLike<number>} x
 * @property {ArrayLike<number | null>} y
 * @property {string} [colour] name of a custom property
 * @property {boolean} [strong]
 */

export class Curves {
  /** @param {string} label @param {object} [options] @param {(label: string) => void} [options.open] @param {number} [options.height] @param {boolean} [options.legend] @param {boolean} [options.stepped] */
  constructor(label, options = {}) {
    this.options = options;
    this.element = el("div.plot", { role: "img", "aria-label": label });
    /** @type {any} */
    this.plot = null;
    /** @type {Curve[]} */
    this.curves = [];
    this.titles = ["", ""];
    new ResizeObserver(() => this.plot?.setSize(this.#size())).observe(this.element);
    onTheme(() => this.#make());
  }

  /** @param {Curve[]} curves @param {string} xTitle @param {string} yTitle */
  show(curves, xTitle, yTitle) {
    const alike = this.plot && curves.length === this.curves.length && yTitle === this.titles[1] && xTitle === this.titles[0]
      && curves.every((curve, at) => curve.label === this.curves[at].label);
    this.curves = curves;
    this.titles = [xTitle, yTitle];
    if (alike) this.plot.setData(this.#data());
    else this.#make();
  }

  #size() {
    return { width: Math.max(200, this.element.clientWidth), height: this.options.height ?? 280 };
  }

  #data() {
    const tables = this.curves.map((curve) => [Array.from(curve.x), Array.from(curve.y)]);
    // Curves of different lengths share one axis.
    return tables.length ? uPlot.join(/** @type {any} */ (tables)) : [[], []];
  }

  #make() {
    this.plot?.destroy();
    if (!this.curves.length) {
      this.plot = null;
      return;
    }
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 },
      font: "12px system-ui, 'DejaVu Sans', sans-serif", labelFont: "12px system-ui, 'DejaVu Sans', sans-serif", labelSize: 18 };
    const values = (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks.map(tick);
    const stepped = this.options.stepped ? { paths: /** @type {any} */ (uPlot.paths).stepped({ align: 1 }) } : {};
    const legend = this.options.legend ?? this.curves.length <= 10;
    this.plot = new (/** @type {any} */ (uPlot))({
      ...this.#size(),
      legend: { show: legend },
      scales: { x: { time: false } },
      focus: { alpha: 0.25 },
      cursor: { focus: { prox: 24 } },
      axes: [{ ...axis, label: this.titles[0], values, size: 32 }, { ...axis, label: this.titles[1], values, size: 52 }],
      series: [{ label: this.titles[0] }, ...this.curves.map((curve, at) => ({
        label: curve.label, stroke: colour(curve.colour ?? COLOURS[at % COLOURS.length]), width: curve.strong ? 2.5 : 1.25,
        spanGaps: true, points: { show: curve.x.length < 2 }, value: (/** @type {any} */ _, /** @type {any} */ value) => number(value), ...stepped,
      }))],
    }, this.#data(), this.element);
    if (this.options.open) {
      this.plot.over.addEventListener("click", () => {
        const at = this.plot.cursor.idxs?.findIndex((/** @type {any} */ each, /** @type {number} */ place) => place && this.plot.series[place]._focus);
        if (at > 0) this.options.open?.(this.curves[at - 1].label);
      });
    }
  }
}
