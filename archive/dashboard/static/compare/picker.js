// @ts-check
/** What adds networks or studies to a comparison: those in the basket, the best of each study, and a search by name. */

import { add, compareLink, items, smallPicture, textOf } from "../parts/basket.js";
import { api, el, fill, section, studyPath, toast } from "../parts/page.js";
import { later } from "../parts/timing.js";

/** @typedef {import("../parts/basket.js").Item} Item */

const LEAST_LETTERS = 2;
const MOST = 12;
/** Studies whose best networks are suggested. */
const ANSWERS = 4;

/**
 * @param {Item["kind"]} kind @param {Item[]} chosen what is compared now @param {number} most
 * @returns {HTMLElement}
 */
export function picker(kind, chosen, most) {
  const list = el("ul.picks");
  const input = /** @type {HTMLInputElement} */ (el("input", { type: "search", placeholder: kind === "network" ? "Name or key of a network" : "Name, task or agent", "aria-label": kind === "network" ? "Find a network" : "Find a study", oninput: later(200, show) }));
  /** @type {{ item: Item, about: string }[]} */
  let suggested = [];
  const full = () => chosen.length >= most;
  const take = (/** @type {Item} */ item) => {
    if (full()) {
      toast(`At most ${most} are compared: take one out.`, true);
      return;
    }
    add([item]);
    location.href = compareLink([...chosen, item]);
  };
  async function show() {
    const typed = input.value.trim().toLowerCase();
    const isNew = (/** @type {{ item: Item }} */ each) => !chosen.some((other) => other.key === each.item.key);
    let rows = suggested.filter((each) => `${textOf(each.item)} ${each.item.key} ${each.about}`.toLowerCase().includes(typed));
    if (kind === "network" && typed.length >= LEAST_LETTERS) {
      const { networks } = await api(`/api/networks?${new URLSearchParams({ find: typed })}`);
      if (typed !== input.value.trim().toLowerCase()) return;
      rows = networks.map((/** @type {any} */ each) => ({ item: { kind, key: each.key, text: each.model ?? undefined }, about: `${each.space}, ${each.layers} layers` }));
    }
    rows = rows.filter(isNew);
    fill(list, rows.slice(0, MOST).map(({ item, about }) => el("li", {}, el("button", { type: "button", onclick: () => take(item) }, kind === "network" && smallPicture(item.key), `+ ${textOf(item)}`), " ", el("span.quiet", {}, about))),
      !rows.length && typed && el("li.quiet", {}, `No ${kind} of this name that is not compared already.`));
  }
  suggestions(kind).then((found) => { suggested = found; show(); });
  return section(kind === "network" ? (chosen.length ? "Add a network" : "Networks") : chosen.length ? "Add a study" : "Studies", input, list);
}

/** What is worth comparing: what is in the basket, the two best of the newest studies, and the best published one. @param {Item["kind"]} kind */
async function suggestions(kind) {
  const { studies } = await api("/api/studies");
  if (kind === "study") return studies.map((/** @type {any} */ each) => ({ item: { kind, key: each.name }, about: `${each.task}, ${each.agent ?? "–"}` }));
  const rows = items().filter((each) => each.kind === "network").map((item) => ({ item, about: "in the comparison" }));
  const newest = studies.filter((/** @type {any} */ each) => each.best !== null).sort((/** @type {any} */ first, /** @type {any} */ second) => second.created - first.created).slice(0, ANSWERS);
  const answers = await Promise.all(newest.map((/** @type {any} */ each) => api(studyPath(each.name, "answer", { estimated: "no" })).catch(() => null)));
  newest.forEach((/** @type {any} */ each, /** @type {number} */ at) => {
    const second = answers[at]?.beaten.find((/** @type {any} */ other) => other.kind === "second")?.architecture;
    for (const [key, about] of [[answers[at]?.architecture, `best of ${each.name}`], [second, `second of ${each.name}`]]) {
      if (key && !rows.some((row) => row.item.key === key)) rows.push({ item: { kind, key }, about });
    }
  });
  const { spaces } = await api("/api/map/choices").catch(() => ({ spaces: [] }));
  const published = spaces.length ? await api(`/api/published?space=${encodeURIComponent(spaces[0].space)}`).catch(() => null) : null;
  if (published?.architecture) rows.push({ item: { kind, key: published.architecture, text: published.model || undefined }, about: `best published on ${published.task}` });
  return rows;
}
