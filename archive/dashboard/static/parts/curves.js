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
 * @property {number} [alpha] opacity of a faint line
 * @property {number[]} [dash]
 * @property {boolean} [quiet] whether the pointer does not name it
 * @property {boolean} [unlisted] whether the legend leaves it out
 * @property {string} [band] colour of the band between this curve and the one before
 */

export class Curves {
  /** @param {string} label @param {object} [options] @param {(label: string) => void} [options.open] @param {number} [options.height] @param {boolean} [options.legend] @param {boolean} [options.stepped] @param {(label: string) => any} [options.describe] what the tip says of the curve under the pointer */
  constructor(label, options = {}) {
    this.options = options;
    this.element = el("div.plot", { role: "img", "aria-label": label });
    this.tip = el("div.tip", { hidden: true });
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
      && curves.every((curve, at) => this.#look(curve) === this.#look(this.curves[at]));
    this.curves = curves;
    this.titles = [xTitle, yTitle];
    if (alike) this.plot.setData(this.#data());
    else this.#make();
  }

  /** What the plot is made of, for a curve: another one of the same look takes its place. @param {Curve} curve */
  #look(curve) {
    const legend = this.options.legend ?? this.curves.length <= 10;
    return [legend && curve.label, legend && curve.unlisted, curve.colour, curve.alpha, curve.dash, curve.strong, curve.band, curve.x.length < 2].join();
  }

  /** Name the curve under the pointer. @param {any} plot @param {number | null} at its series */
  #tell(plot, at) {
    const curve = at ? this.curves[at - 1] : null;
    this.tip.hidden = !curve || Boolean(curve.quiet) || !this.options.describe;
    if (this.tip.hidden || !curve) return;
    this.tip.replaceChildren(...[this.options.describe?.(curve.label)].flat());
    const { left, top } = plot.cursor;
    const right = left > plot.over.clientWidth / 2;
    this.tip.style.left = right ? "" : `${left + 14}px`;
    this.tip.style.right = right ? `${plot.over.clientWidth - left + 14}px` : "";
    this.tip.style.top = `${Math.max(0, top - 40)}px`;
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
    const bands = this.curves.flatMap((curve, at) => (curve.band ? [{ series: [at + 1, at], fill: colour(curve.band) + "2e" }] : []));
    this.plot = new (/** @type {any} */ (uPlot))({
      ...this.#size(),
      bands,
      hooks: { setSeries: [(/** @type {any} */ plot, /** @type {any} */ at) => this.#tell(plot, at)] },
      legend: { show: legend },
      scales: { x: { time: false } },
      focus: { alpha: 0.25 },
      cursor: { focus: { prox: 24 } },
      axes: [{ ...axis, label: this.titles[0], values, size: 32, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 1e5, 1e6] }, { ...axis, label: this.titles[1], values, size: 52 }],
      series: [{ label: this.titles[0] }, ...this.curves.map((curve, at) => ({
        label: curve.label, stroke: colour(curve.colour ?? COLOURS[at % COLOURS.length]) + Math.round(255 * (curve.alpha ?? 1)).toString(16).padStart(2, "0"), width: curve.strong ? 2.5 : 1.25, dash: curve.dash,
        spanGaps: true, points: { show: curve.x.length < 2 }, value: (/** @type {any} */ _, /** @type {any} */ value) => number(value), ...stepped,
      }))],
    }, this.#data(), this.element);
    const entries = this.plot.root.querySelectorAll(".u-legend .u-series");
    this.curves.forEach((curve, at) => entries[at + 1]?.classList.toggle("unlisted", Boolean(curve.unlisted)));
    this.tip.hidden = true;
    this.plot.over.append(this.tip);
    this.plot.over.addEventListener("mouseleave", () => { this.tip.hidden = true; });
    if (this.options.open) {
      this.plot.over.addEventListener("click", () => {
        const at = this.plot.cursor.idxs?.findIndex((/** @type {any} */ each, /** @type {number} */ place) => place && this.plot.series[place]._focus);
        if (at > 0) this.options.open?.(this.curves[at - 1].label);
      });
    }
  }
}
