// @ts-check
/** What comes first of a run: its value, what that is worth, and beside it what the run changed. */

import { badge, el, fill, networkAnchor, number, seconds } from "../parts/page.js";
import { copied, quote } from "../parts/copying.js";
import { differenceOf } from "../parts/difference.js";
import { gainText, parentAnchor, runAnchor, spreadWords, stepItems, verdictWords } from "./words.js";

/**
 * Fill the words beside the change of a run.
 * @param {HTMLElement} element @param {any} run answer of /api/run @param {object} [options] @param {boolean} [options.link] whether it leads to the run's page
 */
export function showWords(element, run, options = {}) {
  const best = run.rank?.place === 1;
  const result = run.value !== null;
  fill(element,
    el(best ? "p.eyebrow" : "p.eyebrow.plain", {}, best ? [el("i.star", {}, "★"), " Best run"] : result ? `Number ${run.rank?.place} of ${run.rank?.of} runs with a result` : "No result"),
    result ? el("p.value", {}, el("b", { id: "best" }, number(run.value)), el("span", {}, el("span", {}, run.objective), el("span.quiet", {}, run.direction === "minimise" ? "smaller is better" : "larger is better")))
      : el("p.reason.whole", {}, badge(run.state), " ", run.reason ?? ""),
    run.motivation && el("blockquote", {}, run.motivation),
    el("p.sure", {}, spreadWords(run)),
    beaten(run),
    el("dl.facts", {}, facts(run, options)),
    el("div.tools.acts", {}, actions(run, options)));
}

/** @param {any} run */
function beaten(run) {
  const rows = [];
  const parent = run.ancestors[run.ancestors.length - 1];
  const sign = run.direction === "minimise" ? -1 : 1;
  if (run.value !== null && parent?.value != null) rows.push(gain(sign * (run.value - parent.value), ["than its parent, ", parentAnchor(run)], parent.value));
  const first = run.ancestors[0];
  if (first && first !== parent && first.value !== null && run.value !== null) {
    rows.push(gain(sign * (run.value - first.value), ["than the first on its way, ", runAnchor(run.study, first.number)], first.value));
  }
  const words = verdictWords(run);
  return [el("ul.beaten", {}, rows), words.length > 0 && el("p", {}, words)];
}

/** @param {number} amount @param {any[]} what @param {number | undefined} value */
function gain(amount, what, value) {
  const word = amount > 0 ? "better" : amount < 0 ? "worse" : "no different";
  return el("li", {}, gainText(amount), el("span", {}, `${word} `, ...what), el("span.quiet.number", {}, value == null ? "" : number(value)));
}

/** @param {any} run @param {{ link?: boolean }} options */
function facts(run, options) {
  const fact = (/** @type {string} */ title, /** @type {any} */ value) => (value === null || value === undefined ? null : el("div", {}, el("dt", {}, title), el("dd", {}, value)));
  return [options.link ? fact("run", runAnchor(run.study, run.number)) : null, fact("seed", run.seed), fact("time", run.seconds === null ? null : seconds(Number(run.seconds.toPrecision(3)))),
    fact("network", run.network && networkAnchor(run.network)), fact("commit", run.commit && el("code", { title: run.commit }, run.commit.slice(0, 10))), fact("branch", run.branch)];
}

/** The command that records a change of a run. @param {any} run */
function changeCommand(run) {
  const words = run.command.length ? run.command.map(quote) : ["PROGRAM"];
  return ["archive record", "--study", quote(run.study), "--parent", run.number, "--why '…' --", ...words].join(" ");
}

/** @param {any} run @param {{ link?: boolean }} options */
function actions(run, options) {
  const command = changeCommand(run);
  return [options.link && el("a.button.primary", { href: `/run?${new URLSearchParams({ study: run.study, number: String(run.number) })}` }, "Open the run"),
    // A command of which parts are left out would run something else.
    run.is_whole_command && el("button", { type: "button", title: command, onclick: () => copied(command) }, "Copy: record a change of it"),
    run.network && run.parent_network && run.network !== run.parent_network
      && el("a.button", { href: `/compare?${new URLSearchParams([["network", run.parent_network], ["network", run.network]])}` }, "Compare the networks")];
}

/** Fill what a run changed: values, and the lines of source files. @param {HTMLElement} element @param {any} run */
export function showChange(element, run) {
  const changed = run.values.filter((/** @type {any} */ value) => value.differs);
  const steps = changed.map((/** @type {any} */ value) => ({ name: value.name, first: value.parent, second: value.value }));
  const parent = parentAnchor(run);
  const title = parent ? ["What it changed of ", parent] : run.files.length ? ["What it changed since its commit"] : ["What it was given"];
  const given = parent ? [] : run.values.map((/** @type {any} */ value) => ({ name: value.name, first: null, second: value.value }));
  const items = stepItems({ steps: [...steps, ...given], further_steps: 0 });
  fill(element, el("h2", {}, title),
    items.length > 0 && el("p.steps-line", {}, items),
    run.files.length > 0 && differenceOf(run.files, run.further_files),
    parent && !items.length && !run.files.length && el("p.quiet", {}, "Nothing but its seed, as far as the record shows."));
}
