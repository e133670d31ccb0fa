// @ts-check
/**
 * Results of a study as columns of numbers, which grow while the page is open.
 *
 * The server sends them in binary form (archive/dashboard/wire.py): a head in JSON and typed arrays, read without a
 * copy. Later rows come with the news, one array of fields each.
 */

import { isCancelled, request, studyPath } from "./page.js";

const ARRAYS = { f8: Float64Array, f4: Float32Array, u4: Uint32Array, u1: Uint8Array };

/** Fields of a row of the news, in the order of archive/dashboard/feeds/fields.py. */
export const FIELDS = ["number", "state", "value", "mean", "std", "agent", "architecture", "epochs", "seconds", "finished",
  "params", "flops", "latency_ms", "peak_memory_bytes", "rung", "worker", "reason", "answered_from",
  "objective_2", "objective_3", "objective_4", "feasible"];

/** Column of the values of an objective, by its place. @param {number} place */
export const objectiveColumn = (place) => (place ? `objective_${place + 1}` : "value");

/**
 * Read the binary form of a table.
 * @param {ArrayBuffer} content @returns {{ head: any, columns: Record<string, any> }}
 */
export function readTable(content) {
  const length = new DataView(content).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(content, 4, length)));
  /** @type {Record<string, any>} */
  const columns = {};
  for (const { name, type, offset } of head.columns) {
    columns[name] = new ARRAYS[/** @type {"f8"} */ (type)](content, 4 + length + offset, head.rows);
  }
  return { head, columns };
}

export class Points {
  /** @param {any} head @param {Record<string, any>} columns */
  constructor(head, columns) {
    this.head = head;
    this.version = head.version;
    this.about = head.about;
    this.running = head.running;
    /** @type {string[]} */
    this.states = head.states;
    /** @type {string[]} */
    this.agents = head.agents;
    this.columns = columns;
    /** @type {number} */
    this.rows = head.rows;
    /** @type {Map<number, number>} place of each number */
    this.places = new Map();
    for (let at = 0; at < this.rows; at++) this.places.set(columns.number[at], at);
    /** @type {Set<string>} columns with a number */
    this.known = new Set(Object.keys(columns).filter((name) => columns[name].some((/** @type {number} */ value) => value === value)));
    /** @type {Uint8Array | null} */
    this.usable = null;
  }

  /** @param {string} study */
  static async load(study) {
    const answer = await request(studyPath(study, "points"));
    return Points.read(await answer.arrayBuffer());
  }

  /** @param {ArrayBuffer} content */
  static read(content) {
    const { head, columns } = readTable(content);
    return new Points(head, columns);
  }

  /** Take the news of a study; return whether a point changed. @param {any} news */
  take(news) {
    if (news.about) this.about = news.about;
    if (news.running) this.running = news.running;
    for (const number of news.gone ?? []) {
      const at = this.places.get(number);
      if (at !== undefined) this.columns.value[at] = NaN;
    }
    for (const row of news.rows ?? []) this.#put(row);
    this.usable = null;
    return Boolean(news.rows || news.gone);
  }

  /** @param {any[]} row */
  #put(row) {
    const values = Object.fromEntries(FIELDS.map((name, at) => [name, row[at]]));
    let at = this.places.get(values.number);
    if (at === undefined) {
      at = this.rows++;
      this.places.set(values.number, at);
      this.#reserve();
    }
    values.cancelled = Number(isCancelled(values));
    values.reused = Number(values.answered_from !== null);
    values.state = this.states.indexOf(values.state);
    values.agent = this.#agent(values.agent);
    for (const [name, column] of Object.entries(this.columns)) {
      column[at] = values[name] ?? NaN;
      if (values[name] != null) this.known.add(name);
    }
  }

  /** @param {string | null} name */
  #agent(name) {
    if (name === null) return 0;
    if (!this.agents.includes(name)) this.agents.push(name);
    return this.agents.indexOf(name);
  }

  #reserve() {
    if (this.rows <= this.columns.number.length) return;
    for (const [name, column] of Object.entries(this.columns)) {
      const larger = new column.constructor(Math.max(64, 2 * column.length));
      larger.set(column);
      this.columns[name] = larger;
    }
  }

  /** @param {string} name */
  column(name) {
    return this.columns[name].subarray(0, this.rows);
  }

  /** Whether any point has a number in a column. @param {string} name */
  has(name) {
    return this.known.has(name);
  }

  /**
   * Number of results up to each one, or what their trainings took, in the order in which they ended; NaN of what has not
   * ended. Results that are not comparable count, too; a reused one took no training.
   * @param {string | null} cost column; null for the number of results
   */
  spent(cost) {
    const evaluated = ["COMPLETE", "PRUNED"].map((state) => this.states.indexOf(state));
    const values = this.column("value");
    // A result at a rung counts as one, before its training has ended.
    const chosen = this.column("state").map((/** @type {number} */ state, /** @type {number} */ at) => Number(evaluated.includes(state) || (!cost && Number.isFinite(values[at]))));
    // A result without a time is the last one.
    const ended = this.column("finished").map((/** @type {number} */ at) => (at === at ? at : Infinity));
    const sums = new Float64Array(this.rows).fill(NaN);
    let sum = 0;
    const failed = this.states.indexOf("FAILED");
    for (let at = 0; at < this.rows; at++) chosen[at] ||= Number(this.columns.state[at] === failed);
    for (const at of sorted(ended, chosen)) {
      // A failure stands at the results before it. An unknown or infinite cost must not end the sum.
      if (this.columns.state[at] === failed) {
        sums[at] = sum;
        continue;
      }
      if (!cost) sum += 1;
      else if (!this.columns.reused[at] && Number.isFinite(this.columns[cost][at])) sum += this.columns[cost][at];
      sums[at] = sum;
    }
    return sums;
  }

  /** Whether each point has a comparable value that meets the constraints: of whole trainings, or of all while there is none. */
  comparable() {
    this.usable ??= this.#comparable();
    return this.usable;
  }

  #comparable() {
    const complete = this.states.indexOf("COMPLETE");
    const [states, values, feasible] = [this.column("state"), this.column("value"), this.column("feasible")];
    const whole = new Uint8Array(this.rows);
    const any = new Uint8Array(this.rows);
    let count = 0;
    for (let at = 0; at < this.rows; at++) {
      any[at] = Number(Number.isFinite(values[at]) && feasible[at] === 1);
      whole[at] = Number(any[at] && states[at] === complete);
      count += whole[at];
    }
    return count ? whole : any;
  }
}

/**
 * Return the points at which the best value so far improves, in the order of `x`.
 *
 * The steps so far are kept in order, and each point is looked up among them: to sort a hundred thousand points would
 * take longer than a frame. Of equal points the first is a step.
 * @param {ArrayLike<number>} x @param {ArrayLike<number>} y @param {ArrayLike<number>} chosen @param {number} sign
 * @returns {number[]} positions
 */
export function improvements(x, y, chosen, sign) {
  /** @type {number[]} */
  const steps = [];
  for (let at = 0; at < x.length; at++) {
    if (!chosen[at] || x[at] !== x[at]) continue;
    let [low, high] = [0, steps.length];
    // The number of steps that are not to the right.
    while (low < high) {
      const middle = (low + high) >> 1;
      if (x[steps[middle]] <= x[at]) low = middle + 1;
      else high = middle;
    }
    const score = sign * y[at];
    if (low && sign * y[steps[low - 1]] >= score) continue;
    let first = low;
    while (first && x[steps[first - 1]] === x[at]) first--;
    let last = low;
    while (last < steps.length && sign * y[steps[last]] <= score) last++;
    if (first === steps.length) steps.push(at);
    else steps.splice(first, last - first, at);
  }
  return steps;
}

/** Positions of the chosen points with a number, by that number. @param {ArrayLike<number>} x @param {ArrayLike<number>} chosen */
export function sorted(x, chosen) {
  const order = [];
  let ordered = true;
  let last = -Infinity;
  for (let at = 0; at < x.length; at++) {
    if (!chosen[at] || x[at] !== x[at]) continue;
    ordered &&= x[at] >= last;
    last = x[at];
    order.push(at);
  }
  return ordered ? order : Uint32Array.from(order).sort((first, second) => x[first] - x[second] || first - second);
}
