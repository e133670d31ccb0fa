// @ts-check
/**
 * The comparison in the making: networks and studies that were chosen on any page, in sight on every page.
 *
 * It stays in this browser, apart for each archive. Every control of one item shows whether it is in, whatever changed it.
 */

import { el, fill, isDark, onTheme, toast } from "./page.js";

/** @typedef {{ kind: "network" | "study", key: string, text?: string }} Item */

/** Most items: a table of more would not be read. */
export const MOST_ITEMS = 60;
/** Pictures in the bar; the others are counted. */
const PICTURES = 8;

const place = () => `archive-basket ${document.body.dataset.place ?? ""}`;

/** @returns {Item[]} */
export function items() {
  try {
    const kept = JSON.parse(localStorage.getItem(place()) ?? "[]");
    return Array.isArray(kept) ? kept.filter((each) => ["network", "study"].includes(each?.kind) && typeof each.key === "string") : [];
  } catch {
    return [];
  }
}

/** @param {Item[]} next */
function keep(next) {
  localStorage.setItem(place(), JSON.stringify(next));
  document.dispatchEvent(new Event("basket"));
}

/** @param {Item} first @param {Item} second */
const isSame = (first, second) => first.kind === second.kind && first.key === second.key;

/** @param {Item} item */
const isIn = (item) => items().some((each) => isSame(each, item));

/** @param {Item[]} more */
export function add(more) {
  const before = items();
  const fresh = more.filter((item) => !before.some((each) => isSame(each, item)));
  if (before.length + fresh.length > MOST_ITEMS) toast(`A comparison has at most ${MOST_ITEMS}: take some out.`, true);
  if (fresh.length) keep([...before, ...fresh].slice(0, MOST_ITEMS));
}

/** @param {Item} item */
export function remove(item) {
  keep(items().filter((each) => !isSame(each, item)));
}

/** @param {Item} item */
export const toggle = (item) => (isIn(item) ? remove(item) : add([item]));

/** Give networks their names, which a row may not know. @param {Map<string, string>} names by key */
export function rename(names) {
  const before = items();
  const after = before.map((each) => (names.has(each.key) && each.kind === "network" ? { ...each, text: names.get(each.key) } : each));
  if (JSON.stringify(after) !== JSON.stringify(before)) keep(after);
}

/** Address of the comparison of all items of a kind. @param {Item[]} chosen */
export const compareLink = (chosen) => `/compare?${new URLSearchParams(chosen.map((each) => [each.kind, each.key]))}`;

/**
 * The one control that puts a network or a study into the comparison, and takes it out.
 * @param {"network" | "study"} kind @param {string} key @param {object} [options]
 * @param {string} [options.text] name for the reader @param {boolean} [options.long] whether it says what it does in words
 * @returns {HTMLElement}
 */
export function comparing(kind, key, options = {}) {
  /** @type {Item} */
  const item = { kind, key, ...(options.text ? { text: options.text } : {}) };
  const button = el(options.long ? "button.compares.long" : "button.compares", { type: "button", dataset: { basket: kind, key },
    onclick: (/** @type {Event} */ event) => { event.preventDefault(); event.stopPropagation(); toggle(item); } });
  say(button);
  return button;
}

/** @param {HTMLElement} button */
function say(button) {
  const { basket: kind, key } = button.dataset;
  const chosen = isIn({ kind: /** @type {any} */ (kind), key: key ?? "" });
  const name = `${kind} ${kind === "network" ? key?.slice(0, 10) : key}`;
  button.setAttribute("aria-pressed", String(chosen));
  button.title = chosen ? `In the comparison: take ${name} out` : `Add ${name} to the comparison`;
  button.textContent = button.classList.contains("long") ? (chosen ? "✓ In the comparison" : "+ Add to comparison") : chosen ? "✓" : "+";
  if (button.classList.contains("long")) button.removeAttribute("aria-label");
  else button.setAttribute("aria-label", chosen ? `In the comparison: ${name}` : `Add to comparison: ${name}`);
}

/** The name of an item for the reader. @param {Item} item */
export const textOf = (item) => item.text ?? (item.kind === "network" ? item.key.slice(0, 10) : item.key);

/** A picture of a network as large as a word. @param {string} key */
export const smallPicture = (key) => el("img.tiny", { alt: "", loading: "lazy", src: `/networks/${encodeURIComponent(key)}.svg?width=220&height=260&theme=${isDark() ? "dark" : "light"}` });

/** The bar at the lower edge of each page, while something is in. */
class Bar {
  constructor() {
    this.list = el("ul.chosen");
    this.head = el("b");
    this.links = el("div.tools");
    this.element = el("aside.basket", { "aria-label": "Comparison", hidden: true }, this.head, this.list, this.links);
  }

  show() {
    const chosen = items();
    this.element.hidden = !chosen.length;
    fill(this.head, `Comparison: ${chosen.length}`);
    const hidden = chosen.length - PICTURES;
    fill(this.list, chosen.slice(0, PICTURES).map((item) => this.#entry(item)), hidden > 0 && el("li.more", {}, `and ${hidden} more`));
    fill(this.links, link(chosen, "network", "networks"), link(chosen, "study", "studies"), el("button", { type: "button", onclick: () => this.#clear() }, "Clear"));
  }

  /** @param {Item} item */
  #entry(item) {
    const address = `/${item.kind}?${item.kind === "network" ? "key" : "study"}=${encodeURIComponent(item.key)}`;
    const picture = item.kind === "network" && smallPicture(item.key);
    const title = `Take ${textOf(item)} out of the comparison`;
    return el("li", { dataset: { key: item.key } }, el("a", { href: address, title: textOf(item) }, picture, el("span", {}, textOf(item))),
      el("button.drop", { type: "button", title, "aria-label": title, onclick: () => this.#drop(item) }, "×"));
  }

  /** @param {Item} item */
  #drop(item) {
    const place = [...this.list.children].findIndex((each) => /** @type {HTMLElement} */ (each).dataset.key === item.key);
    remove(item);
    // The focus goes to the neighbour, so that several are taken out by one key.
    const next = this.list.children[Math.min(place, this.list.children.length - 1)]?.querySelector(".drop");
    if (next instanceof HTMLElement) next.focus({ preventScroll: true });
  }

  #clear() {
    keep([]);
    document.getElementById("view")?.focus({ preventScroll: true });
  }
}

/** Link to the comparison of all items of a kind. @param {Item[]} chosen @param {Item["kind"]} kind @param {string} plural */
function link(chosen, kind, plural) {
  const same = chosen.filter((each) => each.kind === kind);
  if (!same.length) return null;
  return el("a.button.primary", { href: compareLink(same) }, same.length === 1 ? `Compare this ${kind} with …` : `Compare ${same.length} ${plural}`);
}

/** Show the comparison on this page. */
export function showBasket() {
  const bar = new Bar();
  document.querySelector("footer")?.before(bar.element);
  document.addEventListener("basket", () => {
    bar.show();
    for (const button of document.querySelectorAll("button[data-basket]")) say(/** @type {HTMLElement} */ (button));
  });
  // Another tab has changed it.
  addEventListener("storage", (event) => { if (event.key === place()) document.dispatchEvent(new Event("basket")); });
  // The way back may lead to a page as it was left.
  addEventListener("pageshow", (event) => { if (event.persisted) document.dispatchEvent(new Event("basket")); });
  onTheme(() => bar.show());
  bar.show();
}
