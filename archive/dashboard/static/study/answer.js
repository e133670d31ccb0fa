// @ts-check
/** The head of a study's page: its recommended network with picture, value, what it beats, and what to do with it. */

import {
  api, change, el, failed, fill, mayWrite, networkAnchor, networkLink, number, quantity, rounded, seconds, settingText, studyAnchor, studyLink, studyPath, word,
} from "../parts/page.js";
import { ask, sayReadOnly } from "../parts/asking.js";
import { commandLine, copied, quote } from "../parts/copying.js";
import { comparing } from "../parts/basket.js";
import { offer, refill } from "../parts/focus.js";
import { whenSeen } from "../parts/timing.js";
import { NetworkViewer } from "../parts/viewer.js";
import { name, openNumber, sign, study } from "./state.js";
import { describeProgress } from "./pace.js";

/** The last answer of the server. @type {any} */
let found = null;

const viewer = new NetworkViewer({ study: name });
const state = el("p.state");
const lead = el("div.lead");
const sure = el("p.sure");
const beaten = el("ul.beaten");
const made = el("div.made");
const buttons = el("div.tools.acts");
const nothing = el("p.quiet");
const words = el("div.words", {}, nothing, lead, sure, beaten, made, buttons);

export const answerPart = el("div.answer", {}, viewer.element, words);
export const stateLine = state;
export const refreshAnswer = whenSeen(answerPart, load, 3000);

async function load() {
  try {
    // The estimate of the noise takes seconds; what needs none is shown before.
    if (!isFresh()) {
      found = await api(studyPath(name, "answer", { estimated: "no" }));
      showAnswer();
    }
    if (found.architecture) found = await api(studyPath(name, "answer"));
  } catch (error) {
    return failed(sure, error);
  }
  showAnswer();
}

/** Whether the last answer is of the best result that is known now. */
function isFresh() {
  const { best } = study.points.about;
  return Boolean(best && found?.architecture && (found.number === best.number || found.luckiest === best.number));
}

/** Show how far the study is. */
export const showState = () => refill(state, describeProgress(study.points));

/** Show what is known now: the best result at once, and the estimate of its value when it has come. */
export function showAnswer() {
  const { about } = study.points;
  showState();
  const { best } = about;
  answerPart.classList.toggle("open", !best);
  nothing.hidden = Boolean(best);
  if (!best) {
    fill(nothing, ...noResult(about.counts));
    return;
  }
  // An answer to earlier results gives way to a better one until the server has judged it.
  const fresh = isFresh() ? found : null;
  const answer = fresh ?? { number: best.number, architecture: best.architecture, value: best.value, configuration: best.configuration, beaten: [], metrics: {} };
  viewer.show(answer.architecture);
  // News that changes nothing leaves an open list and a selected text alone.
  const key = [answer, about.objectives, about.unit, best.error];
  offer(lead, key, () => [el("p.eyebrow", {}, el("i.star", {}, "★"), about.objectives.length > 1 ? ` Best ${about.objective}` : " Recommended network"),
    el("p.value", {}, el("b", { id: "best" }, rounded(answer.value, answer)),
      el("span", {}, el("span", {}, about.objective, about.unit ? ` (${about.unit})` : ""), el("span.quiet", {}, answer.low == null ? (sign() > 0 ? "larger is better" : "smaller is better")
        : `95 %: ${rounded(answer.low, answer)} to ${rounded(answer.high, answer)}`))),
    ...Object.entries(best.error ?? {}).map(([metric, value]) => el("p.quiet", {}, `${metric} ${number(value)}`))]);
  offer(sure, key, () => [fresh?.estimated ? certainty(fresh, about) : "Estimating how sure this is …"].flat());
  offer(beaten, key, () => (fresh ? gains(fresh) : []));
  offer(made, key, () => [...facts(answer), chips(answer.configuration)]);
  offer(buttons, [answer.architecture, answer.number, answer.beaten, answer.longer], () => actions(answer));
}

/** What a study without a result waits for. @param {Record<string, number>} counts */
function noResult(counts) {
  if (counts.running) return ["The first network is in training. Its picture, its value and what it beats will be here."];
  if (counts.waiting) return ["No result yet: ", el("code", {}, "archive trainer"), " trains what waits."];
  if (counts.failed) return ["No result: the table below has the reasons of the failures."];
  return ["No result. The search is continued by ", el("code", {}, `archive search --study ${quote(name)}`)];
}

/** @param {any} answer @param {any} about */
function certainty(answer, about) {
  if (about.objectives.length > 1) return "One of the Pareto set below: no other result is better in every objective.";
  const lucky = answer.luckiest === null ? [] : [" ", el("button.small", { type: "button", onclick: () => openNumber(answer.luckiest) }, `#${answer.luckiest}`), ` measured ${number(answer.luckiest_value)}, more likely by luck.`];
  if (!answer.noisy) return "Exact: another training of the network gives the same value.";
  if (answer.low === null) return [`Measured ${answer.evaluations === 1 ? "once" : `${answer.evaluations} times`}; no interval: ${answer.unknown}.`, ...lucky];
  const others = answer.rivals === 1 ? "1 other network may be as good: its interval reaches this value." : `${answer.rivals} other networks may be as good: their intervals reach this value.`;
  return [answer.rivals ? others : "No other network comes near: no other interval reaches this value.", ...lucky];
}

/** @param {any} answer */
function gains(answer) {
  const what = {
    second: (/** @type {any} */ each) => ["the second best, ", el("button.small", { type: "button", onclick: () => openNumber(each.number) }, `#${each.number}`)],
    initial: (/** @type {any} */ each) => [each.count === 1 ? "the initial network" : `the best of the ${each.count} initial networks`],
    median: (/** @type {any} */ each) => [`the median of ${each.count} networks`],
    elsewhere: (/** @type {any} */ each) => ["the best of other studies, ", studyAnchor(each.study)],
  };
  const rows = [...answer.beaten, ...answer.elsewhere ? [{ ...answer.elsewhere, kind: "elsewhere" }] : []];
  rows.sort((first, second) => first.gain - second.gain);
  return rows.map((each) => gain(answer, each, what[/** @type {"second"} */ (each.kind)](each)));
}

/** @param {any} answer @param {any} row with the difference, where positive is better @param {any[]} what */
function gain(answer, row, what) {
  const sized = rounded(Math.abs(row.gain), answer);
  const same = Number(sized) === 0;
  const word = same ? "equal to" : row.gain > 0 ? "better than" : "worse than";
  return el("li", {}, el(same ? "b.quiet" : row.gain > 0 ? "b.gain" : "b.loss", {}, sized), el("span", {}, `${word} `, ...what), el("span.quiet.number", {}, rounded(row.value, answer)));
}

/** Costs of a network among the facts. */
const COSTS = ["params", "flops", "latency_ms"];

/** @param {any} answer */
function facts(answer) {
  const fact = (/** @type {any} */ title, /** @type {any} */ value) => (value == null ? null : el("div", {}, el("dt", {}, title), el("dd", {}, value)));
  return [el("dl.facts", {},
    fact("network", [networkAnchor(answer.architecture), " ", el("button.small", { type: "button", onclick: () => openNumber(answer.number) }, `#${answer.number}`)]),
    fact("layers", answer.layers), fact("depth", answer.depth),
    COSTS.map((metric) => fact(word("quantities", metric), answer.metrics[metric] === undefined ? null : quantity(answer.metrics[metric]))),
    Object.entries(answer.metrics).filter(([metric]) => metric.startsWith("test_")).map(([metric, value]) => fact(metric, number(value))),
    fact("trained in", answer.seconds == null ? null : seconds(Number(answer.seconds.toPrecision(2)))))];
}

/** @param {Record<string, any>} configuration */
function chips(configuration) {
  const entries = Object.entries(configuration ?? {});
  return entries.length ? el("dl.chips", {}, entries.map(([title, value]) => el("div", {}, el("dt", {}, title), el("dd", {}, settingText(value))))) : null;
}

/** Where the recommended network is compared with the second best; of a single one, the studies. @param {any} answer */
function pairLink({ architecture, beaten }) {
  const second = beaten.find((/** @type {any} */ each) => each.kind === "second");
  return second ? `/compare?network=${architecture}&network=${second.architecture}` : `/compare?study=${encodeURIComponent(name)}`;
}

/** @param {any} answer */
function actions(answer) {
  const quoted = quote(name);
  const entry = (/** @type {string} */ title, /** @type {string} */ text) => el("button", { type: "button", onclick: () => copied(text) }, title, el("code", {}, text));
  const close = (/** @type {Event} */ event) => {
    const { key, relatedTarget } = /** @type {any} */ (event);
    if (key ? key === "Escape" : relatedTarget && !menu.contains(relatedTarget)) menu.removeAttribute("open");
  };
  const menu = el("details.menu", { onkeydown: close, onfocusout: close }, el("summary", {}, "Export"), el("div", {},
    el("a", { href: `/networks/${answer.architecture}.svg?theme=light`, download: `${answer.architecture.slice(0, 10)}.svg` }, "Picture as SVG"),
    el("a", { href: `/api/networks/${answer.architecture}`, download: `${answer.architecture.slice(0, 10)}.json` }, "Network and results as JSON"),
    entry("Copy: trained network as a file", `archive weights export ${quote(`${name}#${String(answer.number).padStart(5, "0")}`)} --to best.pt2`),
    entry("Copy: all results as a table", `archive study export ${quoted} -o results.csv`)));
  const compare = async (/** @type {Event} */ event) => {
    if (answer.beaten.length) return;
    // The server has not told yet what it beats.
    event.preventDefault();
    location.href = pairLink(await api(studyPath(name, "answer", { estimated: "no" })));
  };
  return [menu,
    el("a.button", { href: pairLink(answer), title: "Compare with the second best", onclick: compare }, "Compare"),
    comparing("network", answer.architecture, { long: true }),
    el("a.button", { href: `${networkLink(answer.architecture)}#nearest` }, "Similar networks"),
    el("button", { type: "button", title: answer.longer?.epochs ? `${answer.longer.epochs} epochs: ${answer.longer.protocol}` : null, onclick: () => trainLonger(answer) }, "Train it longer"),
    el("button", { type: "button", title: `archive study best ${quoted}`, onclick: () => copied(`archive study best ${quoted}`) }, "Copy command")];
}

/** Train the recommended network by the task's longer protocol; where there is none, say why. @param {any} answer */
async function trainLonger(answer) {
  const { longer } = answer.longer ? answer : await api(studyPath(name, "answer", { estimated: "no" }));
  const title = "Train it longer";
  if (longer.why) {
    await ask(title, [el("p", {}, sentence(longer.why)), el("p", {}, "Its picture, its layers and its trained weights are under Export.")], []);
    return;
  }
  if (!mayWrite) {
    await sayReadOnly(title, el("p", {}, `It then proposes the network in the study ${longer.study}: ${longer.epochs} epochs by ${longer.protocol}.`));
    return;
  }
  const done = await change("Waits for a trainer.", "train_longer", { study: name, network: answer.architecture });
  if (done) location.href = `${studyLink(done.study)}&proposal=${done.number}`;
}

/** @param {string} text */
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;

/** Stop the study, and on request train its recommended network longer. */
export async function stopStudy() {
  const { best } = study.points.about;
  const title = `Stop the study ${name}?`;
  if (!mayWrite) {
    await sayReadOnly(title, el("p", {}, "Ctrl-C in the terminal of the search stops it, too."));
    return;
  }
  const choices = /** @type {[string, string][]} */ ([["stop", "Stop"], ...best ? [["longer", "Stop, and train its best longer"]] : []]);
  const chosen = await ask(title, [el("p", {}, "What waits is cancelled; what runs ends. The search can be continued later:"), commandLine(`archive search --study ${quote(name)} --budget ${study.points.about.budget}`)], choices);
  if (!chosen) return;
  const done = await change("The study ends when what runs has ended.", "stop", { study: name });
  study.changed();
  if (done && chosen === "longer") await trainLonger(found?.architecture ? found : { architecture: best.architecture });
}
