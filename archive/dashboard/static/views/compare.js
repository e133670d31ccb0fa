// @ts-check
/** Two networks, many networks, or several studies, side by side; the address has all of them. */

import { compareLink, items, MOST_ITEMS, rename } from "../parts/basket.js";
import { address, api, el, failed, fill, toast, view } from "../parts/page.js";
import { showMany } from "../compare/many.js";
import { showPair } from "../compare/pair.js";
import { picker } from "../compare/picker.js";
import { MOST_STUDIES, showStudies } from "../compare/studies.js";

/** @param {string} kind @returns {string[]} */
const asked = (kind) => [...new Set(address.getAll(kind).map((each) => each.trim()).filter(Boolean))];

/** @param {string[]} keys */
async function networks(keys) {
  const found = await api(`/api/comparison/networks?${new URLSearchParams(keys.slice(0, MOST_ITEMS).map((key) => ["network", key]))}`);
  const more = () => picker("network", found.networks.map((/** @type {any} */ each) => ({ kind: "network", key: each.key })), MOST_ITEMS);
  rename(new Map(found.networks.filter((/** @type {any} */ each) => each.model).map((/** @type {any} */ each) => [each.key, each.model])));
  if (!found.networks.length) fill(view, more());
  else if (found.networks.length === 2) showPair(found, more);
  else showMany(found, more);
  if (found.missing.length) view.prepend(el("p.bad", { role: "alert" }, `The archive has no network ${found.missing.join(", ")}.`));
}

/** @param {string[]} names */
async function studies(names) {
  const shown = names.slice(0, MOST_STUDIES);
  if (shown.length < names.length) toast(`At most ${MOST_STUDIES} studies are compared: these are the first ones.`, true);
  await showStudies(shown, () => picker("study", shown.map((key) => ({ kind: "study", key })), MOST_STUDIES));
}

/** The page without a comparison in its address. */
function begin() {
  fill(view, el("section.card", {}, el("h1", {}, "Compare"), el("p", {}, "Two networks: which is better, and why. Many: a table. Studies: which search is ahead, and whether that is more than chance. ",
    "Choose here, or by the ", el("b", {}, "+"), " beside any network or study.")),
  el("div.cards", {}, picker("network", [], MOST_ITEMS), picker("study", [], MOST_STUDIES)));
}

async function start() {
  try {
    const kept = items();
    const kind = kept.filter((each) => each.kind === "network").length ? "network" : "study";
    if (asked("network").length) await networks(asked("network"));
    else if (asked("study").length) await studies(asked("study"));
    else if (kept.length && !address.has("new")) location.replace(compareLink(kept.filter((each) => each.kind === kind)));
    else begin();
  } catch (error) {
    failed(view, error);
  }
}

start();
