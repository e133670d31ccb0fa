// @ts-check
/**
 * What all views share: elements, requests, numbers as text, the theme, the keys.
 *
 * Names in an archive come from anyone. Nothing here or in a view writes markup: elements are made by `el`, whose
 * children are text or elements.
 */

import { comparing, showBasket } from "./basket.js";

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Return a new element.
 * @param {string} name tag, with classes after dots: "td.number"
 * @param {Record<string, any>} [attributes] attributes; functions are listeners (`onclick`), `dataset` is a map
 * @param {...(Child | Child[])} children text or elements
 * @returns {HTMLElement}
 */
export function el(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key.slice(2), value);
    else if (key === "dataset") Object.assign(element.dataset, value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false).map(
    (child) => (child instanceof Node ? child : visible(String(child)))));
  return element;
}

/** A text whose marks of direction and separators of lines, which would change the text around it, are named. @param {string} text */
export const visible = (text) => text.replace(/[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
  (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** @param {string} selector @returns {HTMLElement} */
export function one(selector) {
  const element = document.querySelector(selector);
  if (!(element instanceof HTMLElement)) throw new Error(`the page has no ${selector}`);
  return element;
}

export const view = one("#view");
export const mayWrite = document.body.dataset.write === "yes";

/** @type {Record<string, Record<string, { text: string, title: string }>>} */
const words = JSON.parse(document.body.dataset.words ?? "{}");

/** The plain word for a name of a paper. @param {"operations" | "layers" | "parts" | "quantities" | "distances"} kind @param {string} name @returns {string} */
export const plainWord = (kind, name) => words[kind]?.[name]?.text ?? name;

/** The plain word, with the name and its meaning when the pointer rests on it. @param {"operations" | "layers" | "parts" | "quantities" | "distances"} kind @param {string} name @returns {HTMLElement} */
export function word(kind, name) {
  const title = words[kind]?.[name]?.title;
  return el("span", { title: title ? `${name}: ${title}` : null }, plainWord(kind, name));
}

/** Words for operations, with commas between them. @param {string[]} operations */
export const operationWords = (operations) => operations.flatMap((operation, index) => [index ? ", " : null, word("operations", operation)]);

/** An answer other than 200, with the server's reason. */
export class Refused extends Error {
  /** @param {string} message @param {number} status */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/**
 * Request JSON.
 * @param {string} path
 * @param {any} [body] sent by POST as JSON
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function api(path, body, signal) {
  return (await request(path, body, signal)).json();
}

/** @param {string} path @param {any} [body] @param {AbortSignal} [signal] @returns {Promise<Response>} */
export async function request(path, body, signal) {
  const post = { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  const answer = await fetch(path, { ...(body === undefined ? {} : post), signal, credentials: "same-origin" });
  if (answer.status === 401) location.reload();
  if (!answer.ok) {
    const said = await answer.json().catch(() => ({}));
    throw new Refused(said.error ?? `the server answers ${answer.status}`, answer.status);
  }
  return answer;
}

/** Path of a study's part of the interface. @param {string} study @param {string} part @param {Record<string, string>} [more] further parameters */
export const studyPath = (study, part, more = {}) => `/api/study/${part}?${new URLSearchParams({ study, ...more })}`;
/** @param {string} name */
export const studyLink = (name) => `/study?study=${encodeURIComponent(name)}`;
/** @param {string} study @param {number} run number of a recorded run */
export const runLink = (study, run) => `/run?${new URLSearchParams({ study, number: String(run) })}`;
/** @param {string} key */
export const networkLink = (key) => `/network?key=${encodeURIComponent(key)}`;

/** A link to a network, with the control that adds it to the comparison. @param {string} key @param {string | null} [text] its name, if it has one @returns {HTMLElement} */
export function networkAnchor(key, text) {
  return el("span.item", {}, el(text ? "a" : "a.key", { href: networkLink(key), title: key }, text || key.slice(0, 10)), comparing("network", key, text ? { text } : {}));
}

/** A picture that the server draws, in the colours of the page. @param {string} path up to the parameter of the colours @param {string} text @returns {HTMLElement} */
export function drawing(path, text) {
  const image = el("img", { alt: text, loading: "lazy" });
  const load = () => image.setAttribute("src", `${path}theme=${isDark() ? "dark" : "light"}`);
  load();
  onTheme(load);
  return el("div.picture", {}, image);
}

/** A link to a study, with the control that adds it to the comparison. @param {string} name @returns {HTMLElement} */
export const studyAnchor = (name) => el("span.item", {}, el("a", { href: studyLink(name) }, name), comparing("study", name));

/** Whether there is no finite number to show. @param {any} value */
const isMissing = (value) => value === null || value === undefined || (typeof value === "number" && !Number.isFinite(value));

/** A number with four significant digits. @param {any} value @returns {string} */
export function number(value) {
  if (isMissing(value)) return "–";
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) return String(value);
  if (size >= 1e6 && size < 1e15) return short(value);
  return size !== 0 && (size < 1e-3 || size >= 1e15) ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}

/** A value with as many digits as its interval permits. @param {number} value @param {any} answer */
export function rounded(value, answer) {
  const width = answer.low == null ? 0 : answer.high - answer.low;
  if (!(width > 0)) return number(value);
  const places = Math.min(12, Math.max(0, 1 - Math.floor(Math.log10(width))));
  return value.toFixed(places);
}

/** A count with its noun: 1 run, 2 runs. @param {number} count @param {string} noun */
export const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** A count of a network, such as its parameters, with its unit. @param {number} value */
export const quantity = (value) => (Math.abs(value) >= 1e4 ? short(value) : number(value));

/** @param {any} value a value of a configuration */
export const settingText = (value) => (typeof value === "number" ? number(value) : typeof value === "string" ? value : JSON.stringify(value));

/** @param {Record<string, any>} configuration @returns {string} `depth=4 lr=0.0003`; empty without named values */
export const settings = (configuration) => Object.entries(configuration).map(([name, value]) => `${name}=${settingText(value)}`).join(" ");

/** A number at a tick of an axis. @param {number} value */
export const tick = (value) => (Math.abs(value) < 1e15 ? quantity(value) : number(value));

/** @param {number} value */
function short(value) {
  const units = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  for (const [unit, name] of units) {
    if (Math.abs(value) >= Number(unit)) return Number((value / Number(unit)).toPrecision(3)) + String(name);
  }
  return String(value);
}

/** Seconds in words. @param {any} value */
export function seconds(value) {
  if (isMissing(value)) return "–";
  if (value < 120) return `${number(value)} s`;
  if (value < 7200) return `${Math.round(value / 60)} min`;
  return `${number(value / 3600)} h`;
}

// The methods of Date make a format at each call, which takes longer than to use it.
const TIME = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat();

/** Time of the database as local time. @param {any} at milliseconds */
export function moment(at) {
  if (!at) return "–";
  const date = new Date(at);
  const today = date.toDateString() === new Date().toDateString();
  return today ? TIME.format(date) : `${DAY.format(date)} ${TIME.format(date)}`;
}

/** @param {string} state of a proposal @returns {HTMLElement} */
export const badge = (state) => el(`span.badge.${state.toLowerCase()}`, {}, state.toLowerCase());

/** Whether a proposal was cancelled, rather than failed: as `is_cancelled` of `archive.store.records`. @param {any} found */
export const isCancelled = (found) => found.state === "FAILED" && /^cancelled(: |$)/.test(found.reason ?? "");

/** Whether the budget of a study is a limit: as `archive.store.studies.budget`. @param {any} study */
export const isLimited = (study) => study.budget < 1_000_000;

/** Replace the children of an element. @param {Element} element @param {...(Child | Child[])} children */
export function fill(element, ...children) {
  element.replaceChildren(...el("i", {}, ...children).childNodes);
}

/** Show why something failed, and return whether it may succeed later: after an outage. @param {Element} element @param {unknown} error */
export function failed(element, error) {
  if (error instanceof DOMException && error.name === "AbortError") return false;
  fill(element, el("p.bad", { role: "alert" }, error instanceof Error ? error.message : String(error)));
  return !isRefusal(error);
}

/** Whether the server has understood a request, and would refuse it again. @param {unknown} error @returns {error is Refused} */
export const isRefusal = (error) => error instanceof Refused && error.status < 500;

/** Show a message for a moment. @param {string} text @param {boolean} [bad] */
export function toast(text, bad = false) {
  const box = el(bad ? "p.toast.bad" : "p.toast", { role: "status" }, text);
  document.body.append(box);
  setTimeout(() => box.remove(), bad ? 8000 : 4000);
}

/** A section with a heading. @param {Child} title @param {...(Child | Child[])} children */
export const section = (title, ...children) => el("section.card", {}, el("h2", {}, title), ...children);

/** Parameters of the address. */
export const address = new URLSearchParams(location.search);

/** Keep the view in the address, so that a link carries it. @param {Record<string, string | null>} changes */
export function carry(changes) {
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") address.delete(name);
    else address.set(name, value);
  }
  history.replaceState(null, "", `${location.pathname}?${address}`);
}

/** @param {string} name @param {Iterable<[string, string]>} options @param {string} chosen @param {(value: string) => void} change */
export function choice(name, options, chosen, change) {
  const select = el("select", { "aria-label": name, onchange: () => change(/** @type {HTMLSelectElement} */ (select).value) },
    [...options].map(([value, text]) => el("option", { value, selected: value === chosen }, text)));
  return el("label.choice", {}, name, " ", select);
}

/** A choice of few, all in sight: one control with a button for each. @param {string} name @param {[string, string][]} options @param {string} chosen @param {(value: string) => void} change */
export function pick(name, options, chosen, change) {
  const group = `pick-${name}-${picks++}`;
  return el("fieldset.pick", {}, el("legend", {}, name), options.map(([value, text]) => el("label", {},
    el("input", { type: "radio", name: group, value, checked: value === chosen, onchange: () => change(value) }), el("span", {}, text))));
}
let picks = 0;

/** @param {string} name of a custom property @returns {string} */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

/** Call when the colours change. @param {() => void} listener */
export function onTheme(listener) {
  document.addEventListener("theme", listener);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", listener);
}

/** Make a change. @param {string} what said when it is made @param {string} path @param {any} body */
export async function change(what, path, body) {
  try {
    const done = await api(`/api/changes/${path}`, body);
    toast(what);
    return done;
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), true);
    return null;
  }
}

const KEYS = [
  ["h", "home", () => (location.href = "/")],
  ["c", "compare", () => (location.href = "/compare")],
  ["m", "map", () => (location.href = "/map")],
  ["a", "ask", () => (location.href = "/ask")],
  ["w", "workers", () => (location.href = "/workers")],
  ["/", "search, as Ctrl-K does", () => one("#find").click()],
  ["d", "light or dark", () => one("#theme").click()],
  ["?", "this list", () => one("#help").click()],
];

function toggleTheme() {
  const next = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("archive-theme", next);
  document.dispatchEvent(new Event("theme"));
}

function showKeys() {
  const box = el("dialog", {}, el("h2", {}, "Keys"),
    el("dl.keys", {}, KEYS.map(([key, text]) => [el("dt", {}, el("kbd", {}, /** @type {string} */ (key))),
      el("dd", {}, /** @type {string} */ (text))]).flat()),
    el("p.quiet", {}, "In a table: arrow keys between rows, Enter opens. In a plot: arrow keys between points."),
    el("form", { method: "dialog" }, el("button.primary", {}, "Close")));
  document.body.append(box);
  box.addEventListener("close", () => box.remove());
  /** @type {HTMLDialogElement} */ (box).showModal();
}

/** @type {Promise<import("./finder.js").Finder> | null} */
let finder = null;

/** Open the search over the whole archive, which few pages need. */
async function find() {
  finder ??= import("./finder.js").then(({ Finder }) => new Finder());
  (await finder).open();
}

// The two modules need each other: either may be evaluated first.
queueMicrotask(showBasket);
one("#find").addEventListener("click", find);
one("#theme").addEventListener("click", toggleTheme);
one("#help").addEventListener("click", showKeys);
document.addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.key === "k" && (event.ctrlKey || event.metaKey) && !event.altKey) {
    event.preventDefault();
    find();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, dialog")) return;
  const found = KEYS.find(([key]) => key === event.key);
  if (!found) return;
  event.preventDefault();
  /** @type {() => void} */ (found[2])();
});
