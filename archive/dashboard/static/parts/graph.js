// @ts-check
/** Nodes and relationships of an answer as a graph: laid out by springs, drawn on a canvas, dragged with a pointer. */

import { colour, el, number, onTheme } from "./page.js";
import { COLOURS } from "./scatter.js";

const MOST = 300;
const STEPS = 240;
const LABELS = ["Study", "Proposal", "Evaluation", "Architecture", "Agent", "Task", "Worker"];

/** @typedef {{ id: string, label: string, title: string, properties: any, x: number, y: number, vx: number, vy: number }} GraphNode */

export class Graph {
  /** @param {any[][]} rows */
  constructor(rows) {
    /** @type {Map<string, GraphNode>} */
    this.nodes = new Map();
    /** @type {{ from: GraphNode, to: GraphNode, type: string }[]} */
    this.edges = [];
    for (const row of rows) {
      for (const value of row) this.#collect(value);
      this.#join(row);
    }
    this.canvas = /** @type {HTMLCanvasElement} */ (el("canvas.graph", { role: "img", "aria-label": "Graph of the answer; the table has the same" }));
    this.tip = el("div.tip", { hidden: true });
    const used = LABELS.filter((label) => [...this.nodes.values()].some((node) => node.label === label));
    this.element = el("div.plot", {}, this.canvas, this.tip, el("p.legend", {}, used.map((label) => el("span", {}, el(`i.swatch-${LABELS.indexOf(label)}`), label)),
      this.nodes.size >= MOST ? `the first ${MOST} nodes` : null));
    this.step = 0;
    /** @type {GraphNode | null} */
    this.held = null;
    this.#listen();
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    onTheme(() => this.draw());
  }

  get size() {
    return this.nodes.size;
  }

  start() {
    requestAnimationFrame(() => this.#tick());
  }

  /** @param {any} value */
  #collect(value) {
    if (!value || typeof value !== "object") return;
    if (Array.isArray(value)) {
      value.forEach((each) => this.#collect(each));
      for (let at = 1; at + 1 < value.length; at++) {
        // A path: node, relationship, node …
        if (value[at]?.type && value[at - 1]?.labels && value[at + 1]?.labels) this.#edge(value[at - 1], value[at + 1], value[at].type);
      }
    } else if (Array.isArray(value.labels) && value.properties) this.#node(value);
  }

  /** Columns in turn: node, relationship, node. @param {any[]} row */
  #join(row) {
    for (let at = 1; at + 1 < row.length; at++) {
      const [first, link, second] = row.slice(at - 1, at + 2);
      if (first?.labels && link?.type && second?.labels) this.#edge(first, second, link.type);
    }
  }

  /** @param {any} value */
  #node(value) {
    const { properties } = value;
    const label = value.labels[0] ?? "";
    const title = String(properties.id ?? properties.name ?? properties.key ?? properties.uri ?? JSON.stringify(properties).slice(0, 40));
    const id = `${label} ${title} ${properties.index ?? ""}`;
    if (!this.nodes.has(id) && this.nodes.size < MOST) {
      const angle = this.nodes.size * 2.4;
      const radius = 12 * Math.sqrt(this.nodes.size);
      this.nodes.set(id, { id, label, title, properties, x: radius * Math.cos(angle), y: radius * Math.sin(angle), vx: 0, vy: 0 });
    }
    return this.nodes.get(id);
  }

  /** @param {any} first @param {any} second @param {string} type */
  #edge(first, second, type) {
    const [from, to] = [this.#node(first), this.#node(second)];
    if (!from || !to || from === to || this.edges.some((each) => each.from === from && each.to === to)) return;
    this.edges.push({ from, to, type });
  }

  #tick() {
    const rounds = matchMedia("(prefers-reduced-motion: reduce)").matches ? STEPS : 2;
    for (let round = 0; round < rounds && this.step < STEPS; round++, this.step++) this.#move(1 - this.step / STEPS);
    this.draw();
    if (this.step < STEPS && this.canvas.isConnected) requestAnimationFrame(() => this.#tick());
  }

  /** @param {number} heat */
  #move(heat) {
    const nodes = [...this.nodes.values()];
    for (let first = 0; first < nodes.length; first++) {
      for (let second = first + 1; second < nodes.length; second++) {
        const [a, b] = [nodes[first], nodes[second]];
        const [dx, dy] = [a.x - b.x || 0.1, a.y - b.y || 0.1];
        const force = 900 / (dx * dx + dy * dy + 20);
        a.vx += dx * force * 0.05; a.vy += dy * force * 0.05;
        b.vx -= dx * force * 0.05; b.vy -= dy * force * 0.05;
      }
    }
    for (const { from, to } of this.edges) {
      const [dx, dy] = [to.x - from.x, to.y - from.y];
      const pull = (Math.hypot(dx, dy) - 46) * 0.02;
      const length = Math.hypot(dx, dy) || 1;
      from.vx += (dx / length) * pull; from.vy += (dy / length) * pull;
      to.vx -= (dx / length) * pull; to.vy -= (dy / length) * pull;
    }
    for (const node of nodes) {
      node.vx = (node.vx - node.x * 0.004) * 0.75;
      node.vy = (node.vy - node.y * 0.004) * 0.75;
      if (node === this.held) continue;
      node.x += Math.max(-20, Math.min(20, node.vx)) * (0.3 + heat);
      node.y += Math.max(-20, Math.min(20, node.vy)) * (0.3 + heat);
    }
  }

  draw() {
    const { canvas } = this;
    const [width, height, ratio] = [canvas.clientWidth, canvas.clientHeight, devicePixelRatio || 1];
    if (!width || !this.size) return;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const nodes = [...this.nodes.values()];
    const reach = Math.max(60, ...nodes.map((node) => Math.abs(node.x) + 30));
    const tall = Math.max(60, ...nodes.map((node) => Math.abs(node.y) + 24));
    this.scale = Math.min(width / 2 / reach, height / 2 / tall, 2);
    context.setTransform(ratio * this.scale, 0, 0, ratio * this.scale, (ratio * width) / 2, (ratio * height) / 2);
    context.strokeStyle = colour("--grey");
    context.lineWidth = 1 / this.scale;
    for (const { from, to } of this.edges) {
      context.beginPath();
      context.moveTo(from.x, from.y);
      context.lineTo(to.x, to.y);
      context.stroke();
    }
    const palette = COLOURS.map(colour);
    context.font = `${11 / this.scale}px system-ui, sans-serif`;
    context.textAlign = "center";
    for (const node of nodes) {
      context.fillStyle = palette[Math.max(0, LABELS.indexOf(node.label)) % palette.length];
      context.beginPath();
      context.arc(node.x, node.y, 7 / Math.max(1, this.scale), 0, 7);
      context.fill();
    }
    context.fillStyle = colour("--ink");
    this.#labels(context, nodes, width);
  }

  /** Write names where they cover no other name. @param {CanvasRenderingContext2D} context @param {GraphNode[]} nodes @param {number} width */
  #labels(context, nodes, width) {
    const scale = this.scale ?? 1;
    const edge = width / 2 / scale;
    /** @type {[number, number, number][]} */
    const written = [];
    for (const node of nodes) {
      const text = named(node);
      const half = context.measureText(text).width / 2 + 2 / scale;
      const x = Math.max(half - edge, Math.min(edge - half, node.x));
      const y = node.y + 18 / scale;
      if (written.some(([left, right, at]) => x + half > left && x - half < right && Math.abs(at - y) < 12 / scale)) continue;
      written.push([x - half, x + half, y]);
      context.fillText(text, x, y);
    }
  }

  /** @param {PointerEvent} event @returns {[number, number]} */
  #place(event) {
    const box = this.canvas.getBoundingClientRect();
    const scale = this.scale ?? 1;
    return [(event.clientX - box.left - box.width / 2) / scale, (event.clientY - box.top - box.height / 2) / scale];
  }

  #listen() {
    const near = (/** @type {PointerEvent} */ event) => {
      const [x, y] = this.#place(event);
      const found = [...this.nodes.values()].find((node) => Math.hypot(node.x - x, node.y - y) < 12 / Math.max(0.5, this.scale ?? 1));
      return found ?? null;
    };
    this.canvas.addEventListener("pointerdown", (event) => { this.held = near(event); });
    addEventListener("pointerup", () => { this.held = null; });
    this.canvas.addEventListener("pointermove", (event) => {
      if (this.held) {
        [this.held.x, this.held.y] = this.#place(event);
        this.draw();
        return;
      }
      const node = near(event);
      this.tip.hidden = !node;
      if (!node) return;
      const lines = Object.entries(node.properties).filter(([, value]) => typeof value !== "object").slice(0, 12);
      this.tip.replaceChildren(el("b", {}, node.label), ...lines.map(([name, value]) => el("div", {}, `${name}: ${typeof value === "number" ? number(value) : String(value).slice(0, 60)}`)));
      this.tip.style.left = `${Math.min(event.offsetX + 12, this.canvas.clientWidth - 200)}px`;
      this.tip.style.top = `${event.offsetY + 12}px`;
    });
  }
}

/** A name in a few characters: of a proposal its number, of an evaluation its end. @param {GraphNode} node */
function named({ label, title }) {
  if (label === "Architecture") return title.slice(0, 8);
  const short = label === "Proposal" || label === "Evaluation" ? title.replace(/^.*#0*(?=\d)/, "#") : title;
  return short.length > 16 ? `${short.slice(0, 15)}…` : short;
}
