// @ts-check
/** One search over studies, networks, recorded runs, notes and questions, from every view: Ctrl-K. */

import { comparing, toggle } from "./basket.js";
import { api, el, fill, networkLink, number, runLink, studyLink } from "./page.js";
import { later } from "./timing.js";

const MOST = 8;
const LEAST_LETTERS = 3;

/** @typedef {{ kind: string, text: string, about: string, link: string, key?: string }} Found */

export class Finder {
  constructor() {
    this.input = /** @type {HTMLInputElement} */ (el("input", { type: "search", placeholder: "A study, a network, a run, a note, a question", "aria-label": "Search the archive", "aria-controls": "found", role: "combobox", "aria-expanded": "true", spellcheck: "false", autocomplete: "off", oninput: () => { this.runs = []; this.#match(); } }));
    this.list = el("ul.found", { id: "found", role: "listbox", "aria-label": "Found" });
    this.box = /** @type {HTMLDialogElement} */ (el("dialog.finder", { "aria-label": "Search" }, this.input, this.list,
      el("p.quiet.hint", {}, el("kbd", {}, "Enter"), " opens, ", el("kbd", {}, "Shift Enter"), " adds to the comparison")));
    this.box.addEventListener("keydown", (event) => this.#key(event));
    this.box.addEventListener("click", (event) => { if (event.target === this.box) this.box.close(); });
    document.body.append(this.box);
    /** What is searched without a request. @type {Found[]} */
    this.known = [];
    /** @type {Found[]} */
    this.networks = [];
    /** Recorded runs that hold the words. @type {Found[]} */
    this.runs = [];
    /** Studies of recorded runs: without one, no run is looked for. @type {string[]} */
    this.recorded = [];
    /** @type {Found[]} */
    this.shown = [];
    this.chosen = 0;
    this.askNetworks = later(200, () => this.#findNetworks());
    // A search for words reads the differences and logs of all runs.
    this.askRuns = later(500, () => this.#findRuns());
  }

  async open() {
    if (this.box.open) return;
    this.box.showModal();
    this.input.select();
    this.#match();
    const [studies, questions] = await Promise.all([api("/api/studies"), api("/api/queries")]).catch(() => [{ studies: [] }, { queries: [] }]);
    this.recorded = studies.studies.filter((/** @type {any} */ study) => study.space === "program").map((/** @type {any} */ study) => study.name);
    this.known = [
      ...studies.studies.map((/** @type {any} */ study) => ({ kind: "study", text: study.name, about: [study.task, study.agent, ...study.tags ?? [], study.note].filter(Boolean).join(" · "), link: studyLink(study.name), key: study.name })),
      ...questions.queries.map((/** @type {any} */ query) => ({ kind: "question", text: query.name, about: query.summary, link: `/ask?query=${encodeURIComponent(query.name)}` })),
    ];
    this.#match();
  }

  /** Show what is known of the typed words. @param {boolean} [again] whether runs have just been found */
  #match(again = false) {
    const typed = this.input.value.trim().toLowerCase();
    const words = typed.split(/\s+/).filter(Boolean);
    const matches = this.known.filter((each) => words.every((word) => `${each.text} ${each.about}`.toLowerCase().includes(word)));
    const isBegin = (/** @type {Found} */ each) => each.text.toLowerCase().startsWith(typed);
    const [begins, others] = [matches.filter(isBegin), matches.filter((each) => !isBegin(each))];
    const networks = this.networks.filter((each) => typed && `${each.text} ${each.link}`.toLowerCase().includes(typed));
    const runs = typed ? [...this.#named(typed), ...this.runs] : [];
    this.shown = [...networks.slice(0, MOST), ...begins, ...others].slice(0, 2 * MOST - Math.min(MOST, runs.length));
    this.shown.push(...runs.slice(0, MOST));
    this.chosen = 0;
    this.#draw();
    if (again) return;
    if (typed.length < LEAST_LETTERS) return;
    this.askNetworks();
    if (this.recorded.length) this.askRuns();
  }

  /** The run whose name is typed: STUDY#7, or #7 where there is one study of runs. @param {string} typed @returns {Found[]} */
  #named(typed) {
    const match = /^(.*)#(\d+)$/.exec(typed);
    if (!match) return [];
    const studies = this.recorded.filter((study) => study.toLowerCase() === match[1] || (!match[1] && this.recorded.length === 1));
    return studies.map((study) => ({ kind: "run", text: `${study} #${Number(match[2])}`, about: "", link: runLink(study, Number(match[2])) }));
  }

  async #findRuns() {
    const typed = this.input.value.trim().toLowerCase();
    if (typed.length < LEAST_LETTERS || !this.box.open) return;
    const answer = await api(`/api/runs?${new URLSearchParams({ find: typed, most: String(MOST) })}`).catch(() => null);
    if (!answer || typed !== this.input.value.trim().toLowerCase()) return;
    this.runs = answer.runs.map((/** @type {any} */ run) => ({ kind: "run", text: `${run.study} #${run.number}`,
      about: [run.value === null ? run.state : `${run.objective} ${number(run.value)}`, run.motivation].filter(Boolean).join(" · "), link: runLink(run.study, run.number) }));
    const chosen = this.shown[this.chosen];
    this.#match(true);
    // Runs that come later leave the choice where it is.
    this.chosen = Math.max(0, this.shown.findIndex((each) => each.link === chosen?.link));
    this.#draw();
  }

  async #findNetworks() {
    const typed = this.input.value.trim().toLowerCase();
    const answer = await api(`/api/networks?${new URLSearchParams({ find: typed })}`).catch(() => null);
    if (!answer || typed !== this.input.value.trim().toLowerCase()) return;
    const before = JSON.stringify(this.networks);
    this.networks = answer.networks.map((/** @type {any} */ row) => ({ kind: "network", text: row.model ?? row.key.slice(0, 10), about: `${row.space}, ${row.layers} layers`, link: networkLink(row.key), key: row.key }));
    if (JSON.stringify(this.networks) !== before) this.#match(true);
  }

  #draw() {
    const items = this.shown.map((each, index) => el("li", { role: "option", id: `found-${index}`, "aria-selected": index === this.chosen ? "true" : "false" },
      el("a", { href: each.link, tabindex: -1 }, el("span.kind", {}, each.kind), el("b", {}, each.text), el("span.quiet", {}, each.about)), this.#control(each)));
    const typed = this.input.value.trim();
    fill(this.list, ...(items.length ? items : [el("li.quiet", {}, typed ? `Nothing in the archive is called ${typed}.` : "Type a name, a key, or a word of a note.")]));
    if (items.length) this.input.setAttribute("aria-activedescendant", `found-${this.chosen}`);
    else this.input.removeAttribute("aria-activedescendant");
  }

  /** @param {Found} item */
  #control(item) {
    if (!item.key) return null;
    const button = comparing(/** @type {"network" | "study"} */ (item.kind), item.key, item.kind === "network" ? { text: item.text } : {});
    // The keys of the list reach it.
    button.tabIndex = -1;
    return button;
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === "Escape") {
      // The field's own meaning of the key is to become empty.
      event.preventDefault();
      this.box.close();
      return;
    }
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step && this.shown.length) {
      event.preventDefault();
      this.chosen = (this.chosen + step + this.shown.length) % this.shown.length;
      this.#draw();
      this.list.children[this.chosen].scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter" && this.shown[this.chosen]) {
      event.preventDefault();
      const { key, kind, text } = this.shown[this.chosen];
      if (event.shiftKey) {
        if (key) toggle({ kind: /** @type {"network" | "study"} */ (kind), key, text });
        return;
      }
      location.href = this.shown[this.chosen].link;
    }
  }
}
