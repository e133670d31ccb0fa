// @ts-check
/** Steps in time as a control: play and pause, a slider, and what is seen at a step in words. */

import { el, fill } from "./page.js";

/** Seconds that a whole run takes. */
const DURATION = 8;

export class Player {
  /** @param {(step: number) => void} show called with the step, from 0 to the number of steps */
  constructor(show) {
    this.show = show;
    this.steps = 0;
    this.step = 0;
    /** Steps at which something better was found. @type {number[]} */
    this.gains = [];
    this.playing = false;
    this.button = el("button", { type: "button", onclick: () => this.#press() });
    this.slider = /** @type {HTMLInputElement} */ (el("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Results so far", oninput: () => { this.pause(); this.go(Number(this.slider.value)); } }));
    this.text = el("output.said");
    this.element = el("div.player", { hidden: true }, this.button, this.slider, this.text);
    this.#name();
  }

  /** Who asks for less motion steps from gain to gain. */
  get #still() {
    return matchMedia("(prefers-reduced-motion: reduce)").matches;
  }

  /** @param {number} steps @param {number[]} gains */
  load(steps, gains) {
    this.pause();
    [this.steps, this.gains] = [steps, gains];
    this.slider.max = String(steps);
    this.element.hidden = steps < 2;
    this.step = steps;
    this.slider.value = String(steps);
  }

  /** @param {number} step */
  go(step) {
    this.step = Math.max(0, Math.min(this.steps, step));
    this.slider.value = String(this.step);
    this.show(this.step);
  }

  /** @param {string} text */
  say(text) {
    fill(this.text, text);
    this.slider.setAttribute("aria-valuetext", text);
  }

  pause() {
    this.playing = false;
    this.#name();
  }

  #name() {
    this.button.textContent = this.#still ? "Next gain" : this.playing ? "❚❚ Pause" : "▶ Play the search";
  }

  #press() {
    if (this.#still) {
      this.go(this.gains.find((gain) => gain > this.step) ?? this.gains[0] ?? this.steps);
      return;
    }
    this.playing = !this.playing;
    this.#name();
    if (!this.playing) return;
    const from = this.step >= this.steps ? 0 : this.step;
    const begin = performance.now();
    const frame = (/** @type {number} */ now) => {
      if (!this.playing || !this.element.isConnected) return;
      this.go(Math.floor(from + ((now - begin) / 1000 / DURATION) * this.steps));
      if (this.step >= this.steps) this.pause();
      else requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }
}
