// @ts-check
/** The curves of a run beside those of its parent and its repeats. */

import { Curves } from "../parts/curves.js";
import { offer } from "../parts/focus.js";
import { api, choice, el, studyPath } from "../parts/page.js";

/** Most repeats whose curves are drawn. */
const REPEATS = 6;

export class RunCurves {
  /** @param {{ height?: number }} [options] */
  constructor(options = {}) {
    this.tools = el("div.tools");
    this.plot = new Curves("Curves of the run, with its parent and its repeats", { legend: true, ...options });
    this.element = el("div", {}, this.tools, this.plot.element);
    this.metric = "";
    /** @type {any} */
    this.run = null;
    /** Curves of other runs. @type {any[]} */
    this.others = [];
  }

  /** @param {any} run answer of /api/run with a curve */
  show(run) {
    const isOther = this.run?.number !== run.number;
    this.run = run;
    const names = Object.keys(run.curve.curves);
    if (!names.includes(this.metric)) this.metric = [run.objective, "val_loss", "train_loss"].find((each) => names.includes(each)) ?? names[0];
    offer(this.tools, names, () => [names.length > 1 && choice("metric", names.map((each) => [each, each]), this.metric, (value) => { this.metric = value; this.#draw(); })]);
    if (isOther) this.others = [];
    this.#draw();
    this.#load(run);
  }

  /** @param {any} run */
  async #load(run) {
    const repeats = run.repeats.map((/** @type {any} */ each) => each.number).filter((/** @type {number} */ each) => each !== run.number);
    const numbers = [...run.parent_number === null ? [] : [run.parent_number], ...repeats.slice(0, REPEATS)];
    if (!numbers.length) return;
    const { curves } = await api(studyPath(run.study, "curves", { numbers: numbers.join(",") })).catch(() => ({ curves: [] }));
    if (run !== this.run) return;
    this.others = curves;
    this.#draw();
  }

  #draw() {
    const { run, metric } = this;
    const others = this.others.filter((each) => each.curve[metric]);
    const line = (/** @type {any} */ each, /** @type {object} */ look) => ({ x: each.epochs, y: each.curve[metric], ...look });
    const parents = others.filter((each) => each.number === run.parent_number);
    const repeats = others.filter((each) => each.number !== run.parent_number);
    this.plot.show([...parents.map((each) => line(each, { label: `#${each.number}, its parent`, colour: "--grey", strong: true, dash: [6, 4] })),
      ...repeats.map((each) => line(each, { label: `#${each.number}, repeat`, colour: "--best", alpha: 0.45 })),
      { label: `#${run.number}`, x: run.curve.steps, y: run.curve.curves[metric], colour: "--best", strong: true }], "step", metric);
  }
}
