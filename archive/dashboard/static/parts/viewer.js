// @ts-check
/**
 * The picture of a network, to look into: zoom, pan, sizes under the pointer, each repeat folded or drawn in full.
 *
 * Drag to move, Ctrl and the wheel or two fingers to zoom; with the focus, arrow keys move, + and - zoom, 0 shows all.
 * A click on the label of a repeat, or Enter where it has the focus, draws that repeat in full, or once again.
 * The server draws the picture with classes only, whose colours /static/palette.css has: it follows the theme.
 */

import { api, el, failed, number, request } from "./page.js";

const [SMALLEST, LARGEST, STEP] = [0.1, 6, 1.25];
/** Scales of the first look: the smallest text has 10 pixels, and a small network does not become huge. */
const [LEAST, MOST] = [0.9, 1.6];
/** Scale from which on the first look has all of the picture. */
const WHOLE = 0.85;

export class NetworkViewer {
  /** @param {object} [options] @param {string} [options.study] whose task decides the sizes of layers */
  constructor(options = {}) {
    this.options = options;
    this.key = "";
    this.folded = true;
    /** Repeats that are drawn in full, by the names that the picture gives them. @type {Set<string>} */
    this.open = new Set();
    /** @type {SVGSVGElement | null} */
    this.picture = null;
    /** Width and height of the picture, and what is seen of it: the left upper corner and the scale. */
    this.size = [1, 1];
    this.seen = { x: 0, y: 0, scale: 1 };
    /** Whether a scale was chosen for the picture: not while it has no place. */
    this.fitted = false;
    /** Whether a picture is asked for once its place has a size. */
    this.waits = false;
    /** Number of the last request for a picture: an earlier one may be answered later. */
    this.asked = 0;
    /** @type {Map<Element, string[]>} */
    this.texts = new Map();
    /** @type {{ shape: number[], params: number }[]} */
    this.sizes = [];
    this.place = el("div.viewed", { tabindex: 0, role: "group", "aria-label": "Picture of the network; arrow keys move it, + and - zoom" });
    this.tip = el("div.tip", { hidden: true });
    const button = (/** @type {string} */ text, /** @type {string} */ title, /** @type {() => void} */ act) => el("button.small", { type: "button", title, "aria-label": title, onclick: act }, text);
    this.fold = /** @type {HTMLInputElement} */ (el("input", { type: "checkbox", checked: true, onchange: () => { this.folded = this.fold.checked; this.open.clear(); this.#load(); } }));
    this.folding = el("label.choice", { hidden: true }, this.fold, " fold repeats");
    this.tools = el("div.viewing", {}, this.folding, button("−", "Smaller", () => this.#zoom(1 / STEP)), button("+", "Larger", () => this.#zoom(STEP)),
      button("Fit", "Fit: show all", () => this.#fit(true)));
    this.element = el("div.viewer", {}, this.place, this.tools, this.tip);
    new ResizeObserver(() => {
      if (this.waits) this.#load();
      else if (this.fitted) this.#draw();
      else this.#fit(false);
    }).observe(this.place);
    this.#listen();
  }

  /** @param {string} key */
  show(key) {
    if (key === this.key) return;
    this.key = key;
    this.open.clear();
    this.#load();
  }

  /** Show another picture of the server, without sizes. @param {string} path */
  showPath(path) {
    if (path === this.key) return;
    this.key = path;
    this.#load();
  }

  /** Draw the picture. @param {string} [part] the repeat that was opened or folded, which keeps its place */
  async #load(part) {
    const key = this.key;
    const mine = ++this.asked;
    const drawn = key.startsWith("/");
    const { clientWidth: width, clientHeight: height } = this.place;
    this.waits = !width || !height;
    if (this.waits) return;
    // The server fills this space with as many columns as are legible in it.
    const space = new URLSearchParams({ width: String(Math.max(320, width)), height: String(Math.max(320, height)) });
    for (const name of this.open) space.append("open", name);
    const path = drawn ? `${key}&${space}` : `/networks/${encodeURIComponent(key)}.svg?theme=page&fold=${this.folded ? "yes" : "no"}&${space}`;
    try {
      const text = await (await request(path)).text();
      if (mine !== this.asked) return;
      this.#take(text, part);
    } catch (error) {
      if (mine === this.asked) failed(this.place, error);
      return;
    }
    if (drawn || part !== undefined) return;
    const study = this.options.study;
    const { sizes } = await api(`/api/networks/${encodeURIComponent(key)}/sizes?${new URLSearchParams(study === undefined ? {} : { study })}`).catch(() => ({ sizes: [] }));
    if (key === this.key) this.sizes = sizes;
  }

  /** @param {string} text @param {string} [part] */
  #take(text, part) {
    const before = part === undefined ? undefined : this.#pointOf(this.#part(part));
    const parsed = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    const picture = /** @type {SVGSVGElement} */ (document.importNode(/** @type {any} */ (parsed), true));
    const { width, height } = picture.viewBox.baseVal;
    this.size = [width, height];
    this.texts.clear();
    // The tip says at once what a title would say after a second.
    for (const node of picture.querySelectorAll(".aa-node")) {
      const title = node.querySelector("title");
      this.texts.set(node, (title?.textContent ?? "").split("\n").filter(Boolean));
      title?.remove();
    }
    if (part === undefined) this.sizes = [];
    const title = picture.querySelector("title");
    this.place.setAttribute("aria-label", `${title?.textContent ?? "network"}; arrow keys move the picture, + and - zoom`);
    title?.remove();
    picture.removeAttribute("role");
    picture.removeAttribute("aria-label");
    for (const label of picture.querySelectorAll(".aa-part")) this.#offer(label);
    if (this.folded) this.folding.hidden = this.key.startsWith("/") || !picture.querySelector(".aa-part");
    this.picture = picture;
    this.place.replaceChildren(picture);
    const after = before && this.#pointOf(this.#part(/** @type {string} */ (part)));
    if (!before || !after) {
      this.fitted = false;
      this.#fit(false);
      return;
    }
    // What was clicked stays under the pointer, with the focus.
    this.seen = { ...this.seen, x: this.seen.x + after.x - before.x, y: this.seen.y + after.y - before.y };
    this.#draw();
    this.#part(/** @type {string} */ (part))?.focus({ preventScroll: true });
  }

  /** Make the label of a repeat a button. @param {Element} label */
  #offer(label) {
    const open = label.getAttribute("data-state") === "open";
    label.setAttribute("role", "button");
    label.setAttribute("tabindex", "0");
    label.setAttribute("aria-expanded", String(open));
    label.setAttribute("aria-label", `${label.textContent}: ${open ? "draw once" : "draw all"}`);
    this.texts.set(label, [...this.texts.get(label) ?? [], open ? "Draw once" : "Draw all"]);
  }

  /** Open or fold a repeat. @param {Element} label */
  #toggle(label) {
    const part = label.getAttribute("data-part") ?? "";
    if (!this.open.delete(part)) this.open.add(part);
    this.#tell(null, 0, 0);
    this.#load(part);
  }

  /** Move the picture so that an element is in sight. @param {Element} element */
  #reveal(element) {
    const [inner, outer] = [element.getBoundingClientRect(), this.place.getBoundingClientRect()];
    const aside = (/** @type {number} */ low, /** @type {number} */ high, /** @type {number} */ least, /** @type {number} */ most) => (low < least ? least - low + 20 : high > most ? most - high - 20 : 0);
    const right = aside(inner.left, inner.right, outer.left, outer.right);
    const down = aside(inner.top, inner.bottom, outer.top, outer.bottom);
    if (right || down) this.#move(right, down);
  }

  /** @param {string} part @returns {SVGGElement | null | undefined} */
  #part(part) {
    return this.picture?.querySelector(`.aa-part[data-part="${CSS.escape(part)}"]`);
  }

  /** Where an element begins in the picture. @param {SVGGraphicsElement | null | undefined} element */
  #pointOf(element) {
    if (!element || !this.picture) return undefined;
    const matrix = this.picture.getScreenCTM()?.inverse().multiply(/** @type {DOMMatrix} */ (element.getScreenCTM()));
    const { x, y } = element.getBBox();
    return matrix ? new DOMPoint(x, y).matrixTransform(matrix) : undefined;
  }

  /** Show all; `small` also where that is too small to read. @param {boolean} small */
  #fit(small) {
    const { clientWidth: width, clientHeight: height } = this.place;
    if (!width || !height || !this.picture) return;
    this.fitted = true;
    const whole = Math.min(width / this.size[0], height / this.size[1]);
    const scale = Math.min(MOST, small || whole >= WHOLE ? whole : LEAST);
    this.seen = { scale, x: (this.size[0] - width / scale) / 2, y: scale > whole ? 0 : (this.size[1] - height / scale) / 2 };
    // Of a picture that is wider than its place, the input is seen first.
    if (width / scale < this.size[0]) {
      const first = this.#pointOf(this.picture.querySelector(".aa-node"));
      this.seen.x = Math.max(0, Math.min(this.size[0] - width / scale, (first?.x ?? 0) - width / scale / 3));
    }
    this.#draw();
  }

  #draw() {
    if (!this.picture) return;
    const { clientWidth: width, clientHeight: height } = this.place;
    const { x, y, scale } = this.seen;
    this.picture.setAttribute("width", String(width));
    this.picture.setAttribute("height", String(height));
    this.picture.setAttribute("viewBox", `${x} ${y} ${width / scale} ${height / scale}`);
  }

  /** Zoom around a point of the element, its middle by default. @param {number} factor @param {number} [px] @param {number} [py] */
  #zoom(factor, px = this.place.clientWidth / 2, py = this.place.clientHeight / 2) {
    const { x, y, scale } = this.seen;
    const next = Math.min(LARGEST, Math.max(SMALLEST, scale * factor));
    this.seen = { scale: next, x: x + px / scale - px / next, y: y + py / scale - py / next };
    this.#draw();
  }

  /** Move the picture by pixels; a part of it stays in sight. @param {number} right @param {number} down */
  #move(right, down) {
    const { x, y, scale } = this.seen;
    const [width, height] = [this.place.clientWidth / scale, this.place.clientHeight / scale];
    const inside = (/** @type {number} */ value, /** @type {number} */ seen, /** @type {number} */ size) => Math.min(size - seen / 4, Math.max(-0.75 * seen, value));
    this.seen = { scale, x: inside(x - right / scale, width, this.size[0]), y: inside(y - down / scale, height, this.size[1]) };
    this.#draw();
  }

  #listen() {
    const { place } = this;
    /** @type {Map<number, [number, number]>} */
    const fingers = new Map();
    const spread = () => {
      const [first, second] = [...fingers.values()];
      return second ? Math.hypot(first[0] - second[0], first[1] - second[1]) : 0;
    };
    place.addEventListener("click", (event) => {
      const label = /** @type {Element} */ (event.target).closest(".aa-part");
      if (label) this.#toggle(label);
    });
    place.addEventListener("focusin", (event) => {
      const label = /** @type {Element} */ (event.target).closest(".aa-part");
      if (label) this.#reveal(label);
    });
    place.addEventListener("pointerdown", (event) => {
      // The capture would take the click from the label.
      if (/** @type {Element} */ (event.target).closest(".aa-part")) return;
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
      place.setPointerCapture(event.pointerId);
      this.#tell(null, 0, 0);
    });
    place.addEventListener("pointermove", (event) => {
      const last = fingers.get(event.pointerId);
      const box = place.getBoundingClientRect();
      if (!last) {
        this.#tell(/** @type {Element} */ (event.target).closest(".aa-node, .aa-part"), event.clientX - box.left, event.clientY - box.top);
        return;
      }
      const before = spread();
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
      if (before) this.#zoom(spread() / before, event.clientX - box.left, event.clientY - box.top);
      else this.#move(event.clientX - last[0], event.clientY - last[1]);
    });
    for (const end of ["pointerup", "pointercancel"]) place.addEventListener(end, (event) => fingers.delete(/** @type {PointerEvent} */ (event).pointerId));
    place.addEventListener("pointerleave", () => this.#tell(null, 0, 0));
    place.addEventListener("wheel", (event) => {
      // Without the key, the wheel moves the page.
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = place.getBoundingClientRect();
      this.#zoom(Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
    place.addEventListener("dblclick", (event) => {
      const box = place.getBoundingClientRect();
      this.#zoom(STEP * STEP, event.clientX - box.left, event.clientY - box.top);
    });
    place.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
      const move = moves[/** @type {keyof typeof moves} */ (event.key)];
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const label = /** @type {Element} */ (event.target).closest(".aa-part");
      if (label && (event.key === "Enter" || event.key === " ")) this.#toggle(label);
      else if (move) this.#move(move[0], move[1]);
      else if (event.key === "+" || event.key === "=") this.#zoom(STEP);
      else if (event.key === "-") this.#zoom(1 / STEP);
      else if (event.key === "0") this.#fit(true);
      else return;
      event.preventDefault();
    });
  }

  /** Say what a box is. @param {Element | null} node @param {number} px @param {number} py */
  #tell(node, px, py) {
    const lines = node ? [...this.texts.get(node) ?? []] : [];
    const last = node?.getAttribute("data-layer") ?? "-1";
    const size = this.sizes[Number(last)];
    if (size?.shape.length) lines.push(`output ${size.shape.join(" × ")}`);
    // A box may stand for several layers.
    const layers = (node?.getAttribute("data-layers") ?? last).split(" ");
    const params = layers.reduce((sum, layer) => sum + (this.sizes[Number(layer)]?.params ?? 0), 0);
    if (params) lines.push(`${number(params)} parameters`);
    this.tip.hidden = !lines.length;
    if (!lines.length) return;
    this.tip.replaceChildren(...lines.map((line, place) => el(place ? "div" : "b", {}, line)));
    const right = px > this.element.clientWidth / 2;
    this.tip.style.left = right ? "" : `${px + 14}px`;
    this.tip.style.right = right ? `${this.element.clientWidth - px + 14}px` : "";
    this.tip.style.top = `${Math.max(0, Math.min(py - 14, this.element.clientHeight - 80))}px`;
  }
}
