// @ts-check
/** Tables: sortable columns, rows that the keyboard reaches, rows replaced in place. */

import { controlsOf } from "./focus.js";
import { el, fill } from "./page.js";

/**
 * @typedef {object} Column
 * @property {string} name name of the field, by which the table is sorted
 * @property {string} [title] heading; the name by default
 * @property {(row: any) => any} [cell] content: text or an element
 * @property {boolean} [numeric] whether it is right-aligned
 * @property {boolean} [tight] whether its text stays on one line
 * @property {boolean} [wide] whether a narrow screen leaves it out
 * @property {(row: any) => any} [key] what it is sorted by; the field by default
 * @property {boolean} [unsorted] whether rows cannot be sorted by it
 * @property {boolean} [optional] whether it is absent until a row has its field
 */

/**
 * A table that sorts its own rows, or asks `sorted` to.
 */
export class Table {
  /**
   * @param {Column[]} columns
   * @param {object} [options]
   * @param {string} [options.sort] column of the first order
   * @param {boolean} [options.descending]
   * @param {(sort: string, descending: boolean) => void} [options.sorted] called instead of sorting
   * @param {(row: any) => string | null} [options.link] address that Enter opens; by default, the first control of the row is clicked
   * @param {string} [options.empty] text without rows
   */
  constructor(columns, options = {}) {
    /** @type {Column[]} all columns, also those that are absent yet */
    this.all = columns;
    this.columns = columns.filter((column) => !column.optional);
    this.options = options;
    this.sort = options.sort ?? "";
    this.descending = options.descending ?? false;
    /** @type {any[]} */
    this.rows = [];
    this.head = el("tr");
    this.body = /** @type {HTMLTableSectionElement} */ (el("tbody"));
    /** @type {Map<string, HTMLElement>} elements of the rows that are shown */
    this.made = new Map();
    this.element = el("div.table", {}, el("table", {}, el("thead", {}, this.head), this.body));
    this.body.addEventListener("keydown", (event) => this.#key(event));
    this.#heading();
  }

  /** Add a column behind another one, unless it is there. @param {string} before @param {Column} column */
  insert(before, column) {
    if (this.columns.some((each) => each.name === column.name)) return;
    const place = this.all.findIndex((each) => each.name === before) + 1;
    this.all = [...this.all.slice(0, place), column, ...this.all.slice(place)];
    this.#showColumns((each) => each === column || this.columns.includes(each));
  }

  /** Show other columns. @param {Column[]} columns */
  choose(columns) {
    this.all = columns;
    this.#showColumns((column) => !column.optional);
  }

  /** Make all rows again when they are shown next: something beside them has changed. */
  forget() {
    this.made = new Map();
  }

  /** @param {(column: Column) => boolean} isShown */
  #showColumns(isShown) {
    this.columns = this.all.filter(isShown);
    this.made = new Map();
    this.#heading();
  }

  /** @param {any[]} rows */
  show(rows) {
    this.rows = rows;
    const absent = this.all.filter((column) => !this.columns.includes(column));
    const present = absent.filter((column) => rows.some((row) => row[column.name] !== null && row[column.name] !== undefined));
    if (present.length) this.#showColumns((column) => present.includes(column) || this.columns.includes(column));
    const before = this.made;
    this.made = new Map();
    const refocus = this.#focused();
    fill(this.body, this.#ordered().map((row) => this.#kept(row, before)),
      rows.length ? null : el("tr", {}, el("td.quiet", { colspan: this.columns.length }, this.options.empty ?? "none")));
    refocus?.();
  }

  /**
   * Return what gives the focus back to its row, and to its control there, after the rows were replaced; null if it is
   * elsewhere. The neighbour of a row that is gone has it then, but none of its controls, which may do something else.
   */
  #focused() {
    const control = /** @type {HTMLElement | null} */ (document.activeElement);
    const row = control?.closest("tr");
    if (!control || !row || !this.body.contains(row)) return null;
    const place = row.rowIndex - 1;
    return () => {
      const rows = [...this.body.rows];
      const same = row.isConnected ? row : rows.find((each) => each.dataset.key === row.dataset.key);
      const inside = same && (same.contains(control) ? control : controlsOf(same).find((each) => each.textContent === control.textContent));
      (inside ?? same ?? rows[Math.min(place, rows.length - 1)]).focus({ preventScroll: true });
    };
  }

  /** Set the order of a table that is sorted elsewhere. @param {string} sort @param {boolean} descending */
  order(sort, descending) {
    [this.sort, this.descending] = [sort, descending];
    this.#heading();
  }

  #ordered() {
    const column = this.columns.find((each) => each.name === this.sort);
    if (this.options.sorted || !column) return this.rows;
    const key = column.key ?? ((row) => row[column.name]);
    const sign = this.descending ? -1 : 1;
    return [...this.rows].sort((first, second) => {
      const [a, b] = [key(first), key(second)];
      if (a === null || a === undefined) return 1;
      if (b === null || b === undefined) return -1;
      return sign * (a < b ? -1 : a > b ? 1 : 0);
    });
  }

  #heading() {
    fill(this.head, this.columns.map((column) => {
      const chosen = column.name === this.sort;
      const sorting = chosen ? (this.descending ? "descending" : "ascending") : "none";
      return el(`th${column.numeric ? ".number" : ""}${column.wide ? ".wide" : ""}`, { "aria-sort": sorting, scope: "col" },
        column.unsorted || column.title === "" ? column.title ?? column.name : el("button.sort", { type: "button", onclick: () => this.#sortBy(column.name) }, column.title ?? column.name,
          chosen ? (this.descending ? " ▾" : " ▴") : ""));
    }));
  }

  /** @param {string} name */
  #sortBy(name) {
    this.descending = name === this.sort ? !this.descending : false;
    this.sort = name;
    this.#heading();
    if (this.options.sorted) this.options.sorted(name, this.descending);
    else this.show(this.rows);
  }

  /** The element of a row, which is made again only where the row has changed. @param {any} row @param {Map<string, HTMLElement>} before */
  #kept(row, before) {
    const text = JSON.stringify(row);
    const element = before.get(text) ?? this.#row(row);
    // Rows may be equal.
    before.delete(text);
    this.made.set(text, element);
    return element;
  }

  /** @param {any} row */
  #row(row) {
    const link = this.options.link?.(row) ?? null;
    const key = String(link ?? row[this.columns[0].name]);
    return el("tr", { tabindex: 0, dataset: link ? { key, link } : { key } }, this.columns.map((column) => {
      const value = column.cell ? column.cell(row) : row[column.name];
      const whole = column.tight && typeof value === "string" ? { title: value } : {};
      return el(`td${column.numeric ? ".number" : ""}${column.tight ? ".tight" : ""}${column.wide ? ".wide" : ""}`, whole, value ?? "–");
    }));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const row = /** @type {HTMLElement} */ (event.target);
    if (row.tagName !== "TR") return;
    const next = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling }[event.key];
    if (next instanceof HTMLElement) {
      event.preventDefault();
      next.focus();
    } else if (event.key === "Enter") {
      // The same key would press the first button of a dialog that opens.
      event.preventDefault();
      if (row.dataset.link) location.href = row.dataset.link;
      else controlsOf(row)[0]?.click();
    }
  }
}
