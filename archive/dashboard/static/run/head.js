// @ts-check
/** What comes first of a run: its value, what that is worth, and beside it what the run changed. */

import { badge, el, fill, networkAnchor, number, seconds } from "../parts/page.js";
import { copied, quote } from "../parts/copying.js";
import { differenceOf } from "../parts/difference.js";
import { gainText, parentAnchor, runAnchor, spreadWords, stepItems, verdictWords } from "./words.js";

/**
 * Fill the words beside the change of a run.
 * @param {HTMLElement} element @param {any} found answer of /api/run @param {object} [options] @param {boolean} [options.link] whether it leads to the run's page
 */
export function showWords(element, found, options = {}) {
  const best = found.rank?.place === 1;
  const result = found.value !== null;
  fill(element,
    el(best ? "p.eyebrow" : "p.eyebrow.plain", {}, best ? [el("i.star", {}, "★"), " Best run"] : result ? `Number ${found.rank?.place} of ${found.rank?.of} runs with a result` : "No result"),
    result ? el("p.value", {}, el("b", { id: "best" }, number(found.value)), el("span", {}, el("span", {}, found.objective), el("span.quiet", {}, found.direction === "minimise" ? "smaller is better" : "larger is better")))
      : el("p.reason.whole", {}, badge(found.state), " ", found.reason ?? ""),
    found.motivation && el("blockquote", {}, found.motivation),
    el("p.sure", {}, spreadWords(found)),
    beaten(found),
    el("dl.facts", {}, facts(found, options)),
    el("div.tools.acts", {}, actions(found, options)));
}

/** @param {any} found */
function beaten(found) {
  const rows = [];
  const parent = found.ancestors[found.ancestors.length - 1];
  const sign = found.direction === "minimise" ? -1 : 1;
  if (found.value !== null && parent?.value != null) rows.push(gain(sign * (found.value - parent.value), ["than its parent, ", parentAnchor(found)], parent.value));
  const first = found.ancestors[0];
  if (first && first !== parent && first.value !== null && found.value !== null) {
    rows.push(gain(sign * (found.value - first.value), ["than the first on its way, ", runAnchor(found.study, first.number)], first.value));
  }
  const words = verdictWords(found);
  return [el("ul.beaten", {}, rows), words.length > 0 && el("p", {}, words)];
}

/** @param {number} amount @param {any[]} what @param {number | undefined} value */
function gain(amount, what, value) {
  const word = amount > 0 ? "better" : amount < 0 ? "worse" : "no different";
  return el("li", {}, gainText(amount), el("span", {}, `${word} `, ...what), el("span.quiet.number", {}, value == null ? "" : number(value)));
}

/** @param {any} found @param {{ link?: boolean }} options */
function facts(found, options) {
  const fact = (/** @type {string} */ title, /** @type {any} */ value) => (value === null || value === undefined ? null : el("div", {}, el("dt", {}, title), el("dd", {}, value)));
  return [options.link ? fact("run", runAnchor(found.study, found.number)) : null, fact("seed", found.seed), fact("time", found.seconds === null ? null : seconds(Number(found.seconds.toPrecision(3)))),
    fact("network", found.network && networkAnchor(found.network)), fact("commit", found.commit && el("code", { title: found.commit }, found.commit.slice(0, 10))), fact("branch", found.branch)];
}

/** The command that records a change of a run. @param {any} found */
function changeCommand(found) {
  const words = found.command.length ? found.command.map(quote) : ["PROGRAM"];
  return ["archive record", "--study", quote(found.study), "--parent", found.number, "--why '…' --", ...words].join(" ");
}

/** @param {any} found @param {{ link?: boolean }} options */
function actions(found, options) {
  const command = changeCommand(found);
  return [options.link && el("a.button.primary", { href: `/run?${new URLSearchParams({ study: found.study, number: String(found.number) })}` }, "Open the run"),
    el("button", { type: "button", title: command, onclick: () => copied(command) }, "Copy: record a change of it"),
    found.network && found.parent_network && found.network !== found.parent_network
      && el("a.button", { href: `/compare?${new URLSearchParams([["network", found.parent_network], ["network", found.network]])}` }, "Compare the networks")];
}

/** Fill what a run changed: values, and the lines of source files. @param {HTMLElement} element @param {any} found */
export function showChange(element, found) {
  const changed = found.values.filter((/** @type {any} */ value) => value.differs);
  const steps = changed.map((/** @type {any} */ value) => ({ name: value.name, first: value.parent, second: value.value }));
  const parent = parentAnchor(found);
  const title = parent ? ["What it changed of ", parent] : found.files.length ? ["What it changed since its commit"] : ["What it was given"];
  const given = parent ? [] : found.values.map((/** @type {any} */ value) => ({ name: value.name, first: null, second: value.value }));
  const items = stepItems({ steps: [...steps, ...given], further_steps: 0 });
  fill(element, el("h2", {}, title),
    items.length > 0 && el("p.steps-line", {}, items),
    found.files.length > 0 && differenceOf(found.files, found.further_files),
    parent && !items.length && !found.files.length && el("p.quiet", {}, "Nothing but its seed, as far as the record shows."));
}
