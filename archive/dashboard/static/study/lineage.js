// @ts-check
/** What the search changed: the steps that led to the best network, and parent and child of a step side by side. */

import { api, el, failed, fill, networkAnchor, networkLink, number, operationWords, section, studyPath } from "../parts/page.js";
import { whenSeen } from "../parts/timing.js";
import { NetworkViewer } from "../parts/viewer.js";
import { name, openNumber, sign } from "./state.js";

const list = el("ol.steps");
const said = el("p.sure");
const compare = el("p");
const viewer = new NetworkViewer();
const problem = el("p");

const card = section("What the search changed", el("div.answer.changed", {}, el("div", {}, said, viewer.element, compare), list), problem);
card.hidden = true;
/** The card is absent without ancestors; its place is there, so that it can be seen. */
export const lineagePart = el("div", {}, card);
export const refreshLineage = whenSeen(lineagePart, load, 10_000);

/** @typedef {{ key: string, operations: string[] }} Step */

/** Child of the step that is shown; the user's choice stays. @type {string | null} */
let chosen = null;
/** Whether the steps lead from parents to children; else from best to best. */
let derived = true;

async function load() {
  try {
    const found = await api(studyPath(name, "lineage"));
    const values = new Map(found.networks.map((/** @type {any} */ each) => [each.key, each]));
    derived = found.steps.length > 0;
    const path = derived ? longest(found.key, found.steps) : found.bests.map((/** @type {string} */ key) => ({ key, operations: [] }));
    card.hidden = path.length < 2;
    if (card.hidden) return;
    const gains = path.map((step, at) => gainOf(values, step, path[at - 1]));
    const helped = gains.findLastIndex((gain) => gain !== null && gain > 0);
    const child = chosen && path.findIndex((step) => step.key === chosen) > 0 ? path.findIndex((step) => step.key === chosen) : Math.max(1, helped);
    const show = (/** @type {number} */ at) => {
      showStep(path[at - 1], path[at], gains[at], at === helped);
      fill(list, path.map((step, place) => item(step, values, place ? path[place - 1] : null, found.builds, gains[place], place === at, () => { chosen = step.key; show(place); })).reverse());
    };
    show(child);
    fill(problem);
  } catch (error) {
    return failed(problem, error);
  }
}

/** The longest known way to a network, the first ancestor first. @param {string} key @param {any[]} steps @returns {Step[]} */
function longest(key, steps) {
  const parents = new Map();
  for (const step of steps) parents.set(step.child, [...(parents.get(step.child) ?? []), step]);
  /** @type {Step[]} */
  const path = [];
  const seen = new Set();
  for (let at = key; at && !seen.has(at);) {
    seen.add(at);
    const step = (parents.get(at) ?? []).find((/** @type {any} */ each) => !seen.has(each.parent));
    path.unshift({ key: at, operations: step?.operations ?? [] });
    at = step?.parent;
  }
  return path;
}

/** How much better a network is than its parent. @param {Map<string, any>} values @param {Step} step @param {Step | undefined} before @returns {number | null} */
function gainOf(values, step, before) {
  const [own, last] = [values.get(step.key), before && values.get(before.key)];
  return own?.value != null && last?.value != null ? sign() * (own.value - last.value) : null;
}

/** @param {number | null} gain */
const gainText = (gain) => (gain === null ? null : el(gain > 0 ? "b.gain" : gain < 0 ? "b.loss" : "b.quiet", {}, `${gain > 0 ? "+" : gain < 0 ? "−" : "±"}${number(Math.abs(gain))}`));

/** @param {Step} before @param {Step} step @param {number | null} gain @param {boolean} last whether it is the last one that helped */
function showStep(before, step, gain, last) {
  const change = step.operations.length ? operationWords(step.operations) : ["not on record"];
  const words = derived ? [last ? "The last change that helped: " : "This change: ", ...change] : [last ? "The last better network, beside the best before it" : "A better network, beside the best before it"];
  fill(said, ...words, gain === null ? "" : ", ", gainText(gain));
  const query = new URLSearchParams([["network", before.key], ["network", step.key]]);
  viewer.showPath(`/differences.svg?${query}&view=beside&theme=page`);
  fill(compare, el("a", { href: `/compare?${query}` }, derived ? "Compare parent and child" : "Compare the two"), ", or open ", el("a", { href: networkLink(step.key) }, derived ? "the child" : "the better one"));
}

/** @param {Step} step @param {Map<string, any>} values @param {Step | null} before @param {Record<string, string>} builds @param {number | null} gain @param {boolean} shown @param {() => void} choose */
function item(step, values, before, builds, gain, shown, choose) {
  const own = values.get(step.key);
  return el(shown ? "li.shown" : "li", {}, networkAnchor(step.key), own ? [" ", el("button.small", { type: "button", onclick: () => openNumber(own.number) }, `#${own.number}`)] : null,
    own?.value != null ? [" ", el("b", {}, number(own.value))] : null, gain === null ? null : [" ", gainText(gain)],
    builds[step.key] ? [before && builds[step.key] === builds[before.key] ? " builds the same network " : " builds ", networkAnchor(builds[step.key])] : null,
    before && el("div.quiet", {}, derived ? (step.operations.length ? operationWords(step.operations) : "a change that is not on record") : "another network", " ",
      el("button.small", { type: "button", "aria-pressed": String(shown), onclick: choose }, "show")));
}
