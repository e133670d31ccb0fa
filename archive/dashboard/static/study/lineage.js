// @ts-check
/** The steps that led to a study's best network. */

import { api, el, failed, fill, networkAnchor, number, operationWords, section, studyPath } from "../parts/page.js";
import { name, openNumber, sign } from "./state.js";

const place = el("div", {}, el("p.quiet", {}, "Loading …"));

export const lineageCard = section("Lineage of the best network", place);

export async function loadLineage() {
  try {
    const found = await api(studyPath(name, "lineage"));
    const values = new Map(found.networks.map((/** @type {any} */ each) => [each.key, each]));
    const path = longest(found.key, found.steps);
    fill(place, path.length > 1 ? el("ol.steps", {}, path.map((step, at) => item(step, values, at ? path[at - 1] : null, found.builds)))
      : el("p.quiet", {}, found.key ? "The best network has no recorded ancestor." : "No result yet."));
  } catch (error) {
    return failed(place, error);
  }
}

/** @typedef {{ key: string, operations: string[] }} Step */

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

/** @param {Step} step @param {Map<string, any>} values @param {Step | null} before @param {Record<string, string>} builds */
function item(step, values, before, builds) {
  const own = values.get(step.key);
  const last = before && values.get(before.key);
  const gain = own?.value != null && last?.value != null ? sign() * (own.value - last.value) : null;
  return el("li", {}, networkAnchor(step.key), own ? [" ", el("button.small", { type: "button", onclick: () => openNumber(own.number) }, `#${own.number}`)] : null,
    own?.value != null ? [" ", el("b", {}, number(own.value))] : null,
    gain === null ? null : el(gain >= 0 ? "span.gain" : "span.loss", {}, ` ${gain >= 0 ? "+" : "−"}${number(Math.abs(gain))}`),
    builds[step.key] ? [before && builds[step.key] === builds[before.key] ? " builds the same network " : " builds ", networkAnchor(builds[step.key])] : null,
    step.operations.length ? el("div.quiet", {}, operationWords(step.operations)) : null);
}
