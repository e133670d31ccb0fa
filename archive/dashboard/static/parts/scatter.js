// @ts-check
/**
 * Scatter plots on a canvas, for a hundred thousand points and more.
 *
 * Few points are drawn as discs; many as squares in the bits of an image, which takes milliseconds. Drag to zoom,
 * double-click to see all again; the arrow keys go from point to point in the order of x.
 */

import { clock, linearTicks, logTicks, padded, timeTicks } from "./axes.js";
import { colour, el, onTheme, tick } from "./page.js";

const MANY = 4000;
const MARGIN = { left: 70, right: 14, top: 10, bottom: 40 };
const NEAR = 14;
/** Pixels between a place and the words on it, which would cover its points. */
const RAISED = 14;

/** Names of the colours of kinds of points, in order; the same as the swatches of style.css. */
export const COLOURS = ["--blue", "--green", "--pink", "--yellow", "--sky", "--violet", "--grey"];

/**
 * @typedef {object} Plotted
 * @property {ArrayLike<number>} x
 * @property {ArrayLike<number>} y
 * @property {ArrayLike<number>} kind number of the colour
 * @property {ArrayLike<number>} shown whether a point is drawn
 * @property {string} xTitle
 * @property {string} yTitle
 * @property {boolean} [log] whether x is logarithmic
 * @property {boolean} [time] whether x is a time in milliseconds
 * @property {{ points: number[], kind: string, step: boolean }[]} [lines] through some points
 * @property {string[]} [palette] names of other colours
 * @property {boolean} [bare] whether to leave out the axes
 * @property {boolean} [diagonal] whether to draw y = x
 * @property {boolean} [whole] whether x counts, so that its ticks are integers
 * @property {number} [chosen] position of a point to mark
 * @property {ArrayLike<number>} [hollow] whether a point is a hollow triangle: a result of a part of the training
 * @property {number[]} [crosses] x of what has no value, as crosses at the lower edge
 * @property {ArrayLike<number>} [faint] whether a point is pale, behind the others
 * @property {number} [outlined] kinds from 1 to this one have an outline, since their colour is near the ground
 * @property {ArrayLike<number>} [order] positions in the order in which points are drawn
 * @property {{ x: number, y: number, text: string }[]} [labels] words on the plot, the most important first
 * @property {number} [star] position of the best point
 * @property {[number, string][]} [yTicks] places and words of the ticks of y, where they are no values
 */

export class Scatter {
  /**
   * @param {string} label description for readers of the screen
   * @param {object} options
   * @param {(at: number) => any} options.describe text or elements about a point
   * @param {(at: number) => void} [options.open] called for a clicked point
   * @param {number} [options.height]
   * @param {(chosen: number[]) => void} [options.enclosed] called with the points inside a line that was drawn around them
   * @param {(at: number) => void} [options.picked] called for the point at which the space bar was pressed
   */
  constructor(label, options) {
    this.options = options;
    this.canvas = /** @type {HTMLCanvasElement} */ (el("canvas", { tabindex: 0, role: "img", "aria-label": label }));
    this.tip = el("div.tip", { hidden: true });
    this.element = el("div.plot.points", {}, this.canvas, this.tip);
    /** @type {Plotted | null} */
    this.data = null;
    /** @type {{ data: Plotted, painted: string, bits: ImageData } | null} squares as they were painted last */
    this.image = null;
    /** @type {[number, number, number, number] | null} */
    this.zoom = null;
    /** @type {[number, number, number, number]} */
    this.range = [0, 1, 0, 1];
    this.box = { left: 0, top: 0, width: 0, height: 0 };
    this.near = -1;
    /** Whether dragging draws a line around points, rather than zooms. */
    this.lassoing = false;
    /** @type {[number, number][]} the line, while it is drawn */
    this.lasso = [];
    this.drawing = false;
    new ResizeObserver(() => this.draw()).observe(this.element);
    onTheme(() => this.draw());
    this.#listen();
  }

  /** @param {Plotted} data */
  show(data) {
    if (this.data && (this.data.xTitle !== data.xTitle || this.data.yTitle !== data.yTitle || this.data.log !== data.log)) this.zoom = null;
    this.data = data;
    this.near = -1;
    this.tip.hidden = true;
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => {
      this.drawing = false;
      this.draw();
    });
  }

  draw() {
    const { data, canvas } = this;
    const width = this.element.clientWidth;
    if (!data || !width) return;
    const height = this.options.height ?? 300;
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.scale(ratio, ratio);
    const margin = data.bare ? { left: 8, right: 8, top: 8, bottom: 8 } : MARGIN;
    this.box = { left: margin.left, top: margin.top, width: width - margin.left - margin.right, height: height - margin.top - margin.bottom };
    this.range = this.zoom ?? this.#extent(data);
    const many = data.x.length > MANY;
    if (many) this.#squares(context, data, ratio);
    // Squares replace what was there, so that the axes go behind them.
    context.globalCompositeOperation = many ? "destination-over" : "source-over";
    this.#axes(context, data);
    context.globalCompositeOperation = "source-over";
    context.save();
    context.beginPath();
    context.rect(this.box.left, this.box.top, this.box.width, this.box.height);
    context.clip();
    if (!many) this.#discs(context, data);
    this.#crosses(context, data);
    this.#lines(context, data);
    this.#labels(context, data);
    if (data.star !== undefined) this.#star(context, data, data.star);
    if (this.lasso.length) this.#lasso(context);
    if (this.near >= 0) this.#mark(context, data, this.near);
    if (data.chosen !== undefined) this.#mark(context, data, data.chosen);
    context.restore();
  }

  /** @param {Plotted} data @returns {[number, number, number, number]} */
  #extent(data) {
    let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let at = 0; at < data.x.length; at++) {
      const [x, y] = [data.x[at], data.y[at]];
      if (!isDrawn(data, at) || (data.log && x <= 0)) continue;
      if (x < x0) x0 = x;
      if (x > x1) x1 = x;
      if (y < y0) y0 = y;
      if (y > y1) y1 = y;
    }
    if (x0 > x1) return [data.log ? 1 : 0, data.log ? 10 : 1, 0, 1];
    [y0, y1] = padded(y0, y1);
    if (data.diagonal) [x0, x1] = padded(x0, x1);
    else if (data.log) [x0, x1] = [x0 / 1.15, x1 * 1.15];
    else [x0, x1] = padded(x0, x1, 0.02);
    return [x0, x1, y0, y1];
  }

  /** @param {number} value */
  px(value) {
    const [x0, x1] = this.range;
    const share = this.data?.log ? Math.log(value / x0) / Math.log(x1 / x0) : (value - x0) / (x1 - x0);
    return this.box.left + share * this.box.width;
  }

  /** @param {number} value */
  py(value) {
    const [, , y0, y1] = this.range;
    return this.box.top + (1 - (value - y0) / (y1 - y0)) * this.box.height;
  }

  /** @param {number} px */
  #x(px) {
    const [x0, x1] = this.range;
    const share = (px - this.box.left) / this.box.width;
    return this.data?.log ? x0 * (x1 / x0) ** share : x0 + share * (x1 - x0);
  }

  /** @param {number} py */
  #y(py) {
    const [, , y0, y1] = this.range;
    return y0 + (1 - (py - this.box.top) / this.box.height) * (y1 - y0);
  }

  /** @param {CanvasRenderingContext2D} context @param {Plotted} data */
  #axes(context, data) {
    if (data.bare) return;
    const { left, top, width, height } = this.box;
    const [x0, x1, y0, y1] = this.range;
    context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    context.lineWidth = 1;
    context.strokeStyle = colour("--line");
    context.fillStyle = colour("--quiet");
    context.textAlign = "center";
    context.textBaseline = "top";
    const room = Math.max(2, Math.floor(width / 80));
    const ticks = data.time ? timeTicks(x0, x1, room) : data.log ? logTicks(x0, x1, room) : linearTicks(x0, x1, room).filter((value) => !data.whole || Number.isInteger(value));
    for (const value of ticks) {
      const x = Math.round(this.px(value)) + 0.5;
      line(context, x, top, x, top + height);
      context.fillText(data.time ? clock(value, x1 - x0) : tick(value), x, top + height + 5);
    }
    context.fillText(data.xTitle, left + width / 2, top + height + 21);
    context.textAlign = "right";
    context.textBaseline = "middle";
    const ticksOfY = data.yTicks?.filter(([value]) => value >= y0 && value <= y1)
      ?? linearTicks(y0, y1, Math.max(2, Math.floor(height / 45))).map((value) => /** @type {[number, string]} */ ([value, tick(value)]));
    let last = Infinity;
    for (const [value, text] of ticksOfY) {
      const y = Math.round(this.py(value)) + 0.5;
      // The first ones are the most important.
      if (Math.abs(y - last) < 16) continue;
      last = y;
      line(context, left, y, left + width, y);
      context.fillText(text, left - 6, y);
    }
    context.save();
    context.translate(11, top + height / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    context.fillText(data.yTitle, 0, 0);
    context.restore();
    if (data.diagonal) {
      context.strokeStyle = colour("--grey");
      context.setLineDash([4, 4]);
      const [low, high] = [Math.max(x0, y0), Math.min(x1, y1)];
      if (low < high) line(context, this.px(low), this.py(low), this.px(high), this.py(high));
      context.setLineDash([]);
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {Plotted} data */
  #discs(context, data) {
    if (data.faint) this.#discsOf(context, data, 1);
    this.#discsOf(context, data, 0);
  }

  /** @param {CanvasRenderingContext2D} context @param {Plotted} data @param {number} faint */
  #discsOf(context, data, faint) {
    const palette = (data.palette ?? COLOURS).map(colour);
    const [pale, outline] = [colour("--none"), colour("--quiet")];
    // What is pale is small, and still seen.
    context.globalAlpha = faint ? 1 : data.bare ? 0.9 : 0.75;
    for (let rank = 0; rank < data.x.length; rank++) {
      const at = data.order?.[rank] ?? rank;
      if (!isDrawn(data, at) || Number(data.faint?.[at] ?? 0) !== faint) continue;
      const shade = palette[data.kind[at] % palette.length];
      const [x, y] = [this.px(data.x[at]), this.py(data.y[at])];
      context.beginPath();
      if (data.hollow?.[at]) {
        context.strokeStyle = colour("--pruned");
        context.moveTo(x - 4, y + 3);
        context.lineTo(x + 4, y + 3);
        context.lineTo(x, y - 4);
        context.closePath();
        context.stroke();
      } else {
        context.fillStyle = faint ? pale : shade;
        context.arc(x, y, faint ? 1.75 : data.bare && data.kind[at] ? 3.5 : 3, 0, 7);
        context.fill();
        if (!faint && data.kind[at] && data.kind[at] <= (data.outlined ?? 0)) {
          context.strokeStyle = outline;
          context.lineWidth = 0.75;
          context.stroke();
        }
      }
    }
    context.globalAlpha = 1;
  }

  /** @param {CanvasRenderingContext2D} context @param {Plotted} data */
  #crosses(context, data) {
    context.strokeStyle = colour("--failed");
    context.lineWidth = 1.5;
    const y = this.box.top + this.box.height - 6;
    for (const value of data.crosses ?? []) {
      const x = this.px(value);
      line(context, x - 3, y - 3, x + 3, y + 3);
      line(context, x - 3, y + 3, x + 3, y - 3);
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {Plotted} data @param {number} ratio */
  #squares(context, data, ratio) {
    const { width, height } = this.canvas;
    const palette = (data.palette ?? COLOURS).map((name) => bitsOf(colour(name)));
    const painted = [width, height, ...this.range, ...palette].join();
    // A mark or a tip changes nothing of the squares.
    if (this.image?.data !== data || this.image.painted !== painted) {
      const same = this.image?.bits.width === width && this.image.bits.height === height;
      const bits = same && this.image ? this.image.bits : context.createImageData(width, height);
      this.#paint(bits, data, palette, ratio);
      this.image = { data, painted, bits };
    }
    context.putImageData(this.image.bits, 0, 0);
  }

  /** @param {ImageData} image @param {Plotted} data @param {number[]} palette @param {number} ratio */
  #paint(image, data, palette, ratio) {
    const { width } = image;
    const bits = new Uint32Array(image.data.buffer).fill(0);
    const pale = bitsOf(colour("--none"));
    const { left, top, width: w, height: h } = this.box;
    const [x0, x1, y0, y1] = this.range;
    const [lx, sx] = data.log ? [Math.log(x0), (w * ratio) / Math.log(x1 / x0)] : [x0, (w * ratio) / (x1 - x0)];
    const sy = (h * ratio) / (y1 - y0);
    const size = Math.max(2, Math.round(2 * ratio));
    const [minX, maxX] = [left * ratio, (left + w) * ratio - size];
    const [minY, maxY] = [top * ratio, (top + h) * ratio - size];
    const { faint, order } = data;
    // What is pale is painted first.
    for (let step = faint ? 0 : data.x.length; step < 2 * data.x.length; step++) {
      const rank = step % data.x.length;
      const at = order?.[rank] ?? rank;
      const isPale = step < data.x.length;
      if (!data.shown[at] || (faint && Boolean(faint[at]) !== isPale)) continue;
      const x = (left * ratio + ((data.log ? Math.log(data.x[at]) : data.x[at]) - lx) * sx) | 0;
      const y = (top * ratio + (y1 - data.y[at]) * sy) | 0;
      if (!(x >= minX && x <= maxX && y >= minY && y <= maxY)) continue;
      const bit = isPale ? pale : palette[data.kind[at] % palette.length];
      for (let row = 0; row < size; row++) {
        const begin = (y + row) * width + x;
        for (let column = 0; column < size; column++) bits[begin + column] = bit;
      }
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {Plotted} data */
  #lines(context, data) {
    for (const { points, kind, step } of data.lines ?? []) {
      if (!points.length) continue;
      context.strokeStyle = colour(kind);
      context.lineWidth = step ? 2 : 1.5;
      context.globalAlpha = step ? 1 : 0.7;
      context.beginPath();
      points.forEach((at, place) => {
        const [x, y] = [this.px(data.x[at]), this.py(data.y[at])];
        if (place === 0) context.moveTo(x, y);
        else {
          if (step) context.lineTo(x, this.py(data.y[points[place - 1]]));
          context.lineTo(x, y);
        }
      });
      if (step) context.lineTo(this.box.left + this.box.width, this.py(data.y[points[points.length - 1]]));
      context.stroke();
      context.globalAlpha = 1;
    }
  }

  /** Words with a halo; one that would cover another is left out. @param {CanvasRenderingContext2D} context @param {Plotted} data */
  #labels(context, data) {
    context.font = "600 12px system-ui, 'DejaVu Sans', sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    /** @type {number[][]} */
    const taken = [];
    for (const { x, y, text } of data.labels ?? []) {
      const half = context.measureText(text).width / 2 + 4;
      const px = Math.min(Math.max(this.px(x), this.box.left + half), this.box.left + this.box.width - half);
      const py = Math.min(Math.max(this.py(y) - RAISED, this.box.top + 10), this.box.top + this.box.height - 10);
      if (Math.abs(px - this.px(x)) > half || Math.abs(py - this.py(y)) > 20 + RAISED) continue;
      if (taken.some(([left, right, middle]) => px - half < right && px + half > left && Math.abs(py - middle) < 18)) continue;
      taken.push([px - half, px + half, py]);
      context.strokeStyle = colour("--card");
      context.lineWidth = 4;
      context.strokeText(text, px, py);
      context.fillStyle = colour("--ink");
      context.fillText(text, px, py);
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {Plotted} data @param {number} at */
  #star(context, data, at) {
    const [x, y] = [this.px(data.x[at]), this.py(data.y[at])];
    context.beginPath();
    for (let corner = 0; corner < 10; corner++) {
      const [angle, radius] = [(Math.PI * corner) / 5 - Math.PI / 2, corner % 2 ? 4 : 10];
      context.lineTo(x + radius * Math.cos(angle), y + radius * Math.sin(angle));
    }
    context.closePath();
    context.fillStyle = colour("--best");
    context.strokeStyle = colour("--card");
    context.lineWidth = 1.5;
    context.fill();
    context.stroke();
  }

  /** @param {CanvasRenderingContext2D} context */
  #lasso(context) {
    context.beginPath();
    for (const [x, y] of this.lasso) context.lineTo(x, y);
    context.closePath();
    context.strokeStyle = colour("--accent");
    context.lineWidth = 1.5;
    context.setLineDash([5, 4]);
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = colour("--accent") + "1a";
    context.fill();
  }

  /** Points inside the line that was drawn. */
  #enclosed() {
    const data = this.data;
    const chosen = [];
    for (let at = 0; data && at < data.x.length; at++) {
      if (isDrawn(data, at) && isInside(this.lasso, this.px(data.x[at]), this.py(data.y[at]))) chosen.push(at);
    }
    return chosen;
  }

  /** @param {CanvasRenderingContext2D} context @param {Plotted} data @param {number} at */
  #mark(context, data, at) {
    context.strokeStyle = colour("--ink");
    context.lineWidth = 2;
    context.beginPath();
    context.arc(this.px(data.x[at]), this.py(data.y[at]), 6, 0, 7);
    context.stroke();
  }

  #listen() {
    /** @type {[number, number] | null} */
    let start = null;
    const place = (/** @type {PointerEvent | MouseEvent} */ event) => {
      const box = this.canvas.getBoundingClientRect();
      return /** @type {[number, number]} */ ([event.clientX - box.left, event.clientY - box.top]);
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      start = place(event);
      if (!this.options.enclosed || !(this.lassoing || event.shiftKey)) return;
      this.lasso = [start];
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!this.lasso.length) {
        this.#hover(...place(event));
        return;
      }
      this.lasso.push(place(event));
      this.draw();
    });
    this.canvas.addEventListener("pointercancel", () => { this.lasso = []; });
    this.canvas.addEventListener("pointerleave", () => this.#choose(-1));
    this.canvas.addEventListener("pointerup", (event) => {
      const end = place(event);
      const drawn = this.lasso.length > 3 ? this.#enclosed() : null;
      this.lasso = [];
      if (drawn) {
        start = null;
        this.draw();
        this.options.enclosed?.(drawn);
        return;
      }
      if (start && event.pointerType === "mouse" && Math.abs(end[0] - start[0]) > 12 && Math.abs(end[1] - start[1]) > 12) {
        const [xs, ys] = [[this.#x(start[0]), this.#x(end[0])], [this.#y(start[1]), this.#y(end[1])]];
        this.zoom = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
        this.draw();
      } else {
        this.#hover(...end);
        if (this.near >= 0) this.options.open?.(this.near);
      }
      start = null;
    });
    this.canvas.addEventListener("dblclick", () => {
      this.zoom = null;
      this.draw();
    });
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Enter" && this.near >= 0) {
      // Its default would press the button of a dialog that this opens.
      event.preventDefault();
      this.options.open?.(this.near);
    }
    if (event.key === " " && this.near >= 0 && this.options.picked) {
      event.preventDefault();
      this.options.picked(this.near);
    }
    if (event.key === "Escape") {
      this.zoom = null;
      this.#choose(-1);
      this.draw();
    }
    if (!step || !this.data) return;
    event.preventDefault();
    const data = this.data;
    const { x } = data;
    const order = Array.from({ length: x.length }, (_, at) => at).filter((at) => isDrawn(data, at));
    order.sort((first, second) => x[first] - x[second]);
    const next = order[(order.indexOf(this.near) + step + order.length) % order.length];
    if (next !== undefined) this.#choose(next);
  }

  /** @param {number} px @param {number} py */
  #hover(px, py) {
    const data = this.data;
    if (!data || !this.box.width) return;
    let [best, nearest] = [NEAR * NEAR, -1];
    for (let at = 0; at < data.x.length; at++) {
      if (!data.shown[at]) continue;
      const dx = this.px(data.x[at]) - px;
      if (!(dx < NEAR && dx > -NEAR)) continue;
      const dy = this.py(data.y[at]) - py;
      const distance = dx * dx + dy * dy;
      if (distance < best) [best, nearest] = [distance, at];
    }
    this.#choose(nearest);
  }

  /** @param {number} at */
  #choose(at) {
    if (at === this.near) return;
    this.near = at;
    this.draw();
    this.tip.hidden = at < 0;
    if (at < 0 || !this.data) return;
    this.tip.replaceChildren(...[this.options.describe(at)].flat());
    const [x, y] = [this.px(this.data.x[at]), this.py(this.data.y[at])];
    const right = x > this.element.clientWidth / 2;
    this.tip.style.left = right ? "" : `${x + 12}px`;
    this.tip.style.right = right ? `${this.element.clientWidth - x + 12}px` : "";
    this.tip.style.top = `${Math.max(0, y - 14)}px`;
  }
}

/** Whether a point has a place: an infinite cost has none. @param {Plotted} data @param {number} at */
const isDrawn = (data, at) => data.shown[at] && Number.isFinite(data.x[at]) && Number.isFinite(data.y[at]);

/** Whether a place is inside a closed line: a ray from it crosses the line an odd number of times. @param {[number, number][]} line @param {number} x @param {number} y */
export function isInside(line, x, y) {
  let inside = false;
  for (let at = 0, before = line.length - 1; at < line.length; before = at++) {
    const [[x0, y0], [x1, y1]] = [line[before], line[at]];
    if (y0 > y !== y1 > y && x < ((x1 - x0) * (y - y0)) / (y1 - y0) + x0) inside = !inside;
  }
  return inside;
}

/** @param {CanvasRenderingContext2D} context @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 */
function line(context, x0, y0, x1, y1) {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

/** Colour as the bits of a pixel. @param {string} hex */
function bitsOf(hex) {
  const value = parseInt(hex.slice(1), 16);
  return (0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}
