// @ts-check
/** Networks that were chosen on a map: what they share, and a table of them. */

import { add } from "./basket.js";
import { api, el, failed, fill, networkAnchor, networkLink, number, section } from "./page.js";
import { Table } from "./table.js";

/** Rows of the table. */
const SHOWN = 200;
/** Networks that are put into the comparison at once. */
const ADDED = 20;

/** Networks whose common properties are asked for at once, as in archive/dashboard/endpoints/maps.py. */
const MOST = 20_000;

/** @param {string} trait */
const verb = (trait) => (trait.startsWith("no ") ? "lack" : trait.startsWith("mostly ") ? "consist mostly of" : "have");

export class Selection {
  /** @param {import("./places.js").Places} places @param {() => string} query space and distance of the map */
  constructor(places, query) {
    this.places = places;
    this.query = query;
    this.title = el("span");
    this.shared = el("ul.why");
    this.tools = el("div.tools");
    this.place = el("div");
    this.asked = 0;
    this.element = section(this.title, this.shared, this.tools, this.place);
    this.element.hidden = true;
    this.element.setAttribute("aria-live", "polite");
  }

  /** @param {number[]} chosen */
  show(chosen) {
    this.element.hidden = !chosen.length;
    if (!chosen.length) return;
    const rows = chosen.map((at) => this.#row(at));
    const { head } = this.places.map;
    const known = rows.filter((row) => row.value !== null);
    known.sort((first, second) => (head.direction === "minimise" ? 1 : -1) * (Number(first.value) - Number(second.value)));
    const ordered = [...known, ...rows.filter((row) => row.value === null)];
    fill(this.title, `${rows.length} chosen ${rows.length === 1 ? "network" : "networks"}`);
    const several = Math.min(ADDED, rows.length);
    fill(this.tools, el("button.primary", { type: "button", onclick: () => add(ordered.slice(0, several).map((row) => ({ kind: "network", key: row.key, ...(row.name ? { text: row.name } : {}) }))) },
      several < rows.length ? `Add the best ${several} to comparison` : `Add to comparison`),
    el("button", { type: "button", onclick: () => this.places.choose([]) }, "Choose none"), rows.length > SHOWN && el("span.quiet", {}, `The first ${SHOWN} are shown.`));
    const table = new Table([
      { name: "key", title: "network", cell: (row) => networkAnchor(row.key, row.name), key: (row) => row.name ?? row.key },
      { name: "value", title: head.objective || "value", numeric: true, cell: (row) => number(row.value) },
      { name: "region", title: "group", cell: (row) => row.region ?? "–" },
      ...(head.paths.length || head.kinds.length ? [{ name: "kind", title: head.paths.length ? "study" : this.places.colour, wide: true, cell: (/** @type {any} */ row) => row.kind ?? "–" }] : []),
    ], { link: (row) => networkLink(row.key) });
    table.show(ordered.slice(0, SHOWN));
    fill(this.place, el("div.tall", {}, table.element));
    this.#describe(rows, known);
  }

  /** @param {number} at */
  #row(at) {
    const { head, columns } = this.places.map;
    const value = columns.value[at];
    return { key: this.places.keyOf(at), name: head.models[at] || null, value: Number.isFinite(value) ? value : null, region: head.regions[columns.region[at] - 1]?.name ?? null,
      kind: head.paths[columns.study[at] - 1]?.study ?? head.kinds[columns.kind[at] - 1]?.name ?? null };
  }

  /** @param {any[]} rows @param {any[]} known those with a value, the best first */
  async #describe(rows, known) {
    const mine = ++this.asked;
    const { head } = this.places.map;
    const range = known.length > 1 ? el("li", {}, `${head.objective}: ${number(known[known.length - 1].value)} to ${number(known[0].value)}, the best is `, networkAnchor(known[0].key, known[0].name)) : null;
    fill(this.shared, range, rows.length > MOST && el("li", {}, `What they share is found for at most ${MOST} networks.`));
    if (rows.length > MOST) return;
    try {
      const { shared } = await api(`/api/map/selection?${this.query()}`, { keys: rows.map((row) => row.key) });
      if (mine !== this.asked) return;
      const percent = (/** @type {number} */ share) => `${Math.round(100 * share)} %`;
      fill(this.shared, range, shared.map((/** @type {any} */ trait) => el("li", {}, `${trait.inside === 1 ? "All" : percent(trait.inside)} ${verb(trait.name)} `, el("b", {}, trait.name.replace(/^(no|mostly) /, "")), `, of the others ${percent(trait.outside)}`)),
        !shared.length && el("li", {}, "No operation tells them from the other networks."));
    } catch (error) {
      if (mine === this.asked) failed(this.shared, error);
    }
  }
}
