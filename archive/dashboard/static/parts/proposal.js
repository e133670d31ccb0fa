// @ts-check
/** One proposal in a dialog: values, events, the end of its log, and what a user may do with it. */

import { api, badge, change, el, failed, fill, isCancelled, mayWrite, moment, networkAnchor, number, seconds, settings, studyPath } from "./page.js";
import { Curves } from "./curves.js";

/**
 * @param {string} study @param {number} proposal
 * @param {object} [options] @param {() => void} [options.closed] @param {() => void} [options.changed]
 */
export async function showProposal(study, proposal, options = {}) {
  document.querySelector("dialog.proposal")?.remove();
  const content = el("div", {}, el("p.quiet", {}, "Loading …"));
  const box = /** @type {HTMLDialogElement} */ (el("dialog.proposal", {}, content, el("form", { method: "dialog" }, el("button", {}, "Close"))));
  document.body.append(box);
  box.addEventListener("close", () => { box.remove(); options.closed?.(); });
  box.showModal();
  try {
    const found = await api(studyPath(study, "proposal", { number: String(proposal) }));
    const again = () => { options.changed?.(); showProposal(study, proposal, options); };
    fill(content, ...body(study, found, again));
    if (found.value !== null) showCurve(content, study, proposal);
  } catch (error) {
    failed(content, error);
  }
}

/** @param {string} study @param {any} found @param {() => void} again */
function body(study, found, again) {
  const fact = (/** @type {string} */ title, /** @type {any} */ value) => value === null || value === undefined ? null : el("div", {}, el("dt", {}, title), el("dd", {}, value));
  const changed = Object.entries(found.hyperparameters).map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : number(value)}`);
  const named = Object.keys(found.configuration).some((name) => !Object.hasOwn(found.hyperparameters, name));
  return [
    el("h2", {}, `${study} #${found.number} `, badge(isCancelled(found) ? "cancelled" : found.state)),
    el("dl.facts", {}, fact("value", number(found.value)), fact("network", networkAnchor(found.architecture_key)), fact("agent", found.agent),
      fact("predicted score", found.mean === null ? null : `${number(found.mean)} ± ${number(found.std)}`), fact("acquisition", found.acquisition === null ? null : number(found.acquisition)),
      fact("epochs", found.epochs || null), fact("time", found.seconds === null ? null : seconds(found.seconds)), fact("priority", found.priority || null),
      fact("device", found.hardware ?? found.device), fact("seed", found.seed), fact("worker", found.worker), fact("answered from", found.answered_from),
      fact("weights", found.weights), fact("configuration", named ? settings(found.configuration) : null), fact("settings", named ? null : changed.join(", ") || null), fact("reason", found.reason),
      fact("cause", found.cause), fact("refused by", found.refused_by?.join(", ") || null), fact("memory needed", found.memory_bytes ? `${number(found.memory_bytes / 2 ** 30)} GiB` : null)),
    el("p.legend", {}, Object.entries(found.metrics).map(([name, value]) => el("span", {}, `${name} ${number(value)}`))),
    el("div", { dataset: { part: "curve" } }),
    el("h3", {}, "Events"),
    el("ul.steps", {}, found.events.map((/** @type {any} */ event) => el("li", {}, `${moment(event.at)}  `, el("b", {}, event.event), event.who ? ` by ${event.who}` : "", event.cause ? ` (${event.cause})` : "",
      event.reason ? `: ${event.reason}` : "", event.log ? el("pre.log", {}, event.log) : null))),
    mayWrite ? buttons(found, again) : null,
  ];
}

/** @param {any} found @param {() => void} again */
function buttons(found, again) {
  const act = (/** @type {string} */ title, /** @type {string} */ what, /** @type {string} */ path, /** @type {any} */ more = {}) => el("button.small", { type: "button", dataset: { action: path },
    onclick: async () => { if (await change(what, path, { proposal: found.id, ...more })) again(); } }, title);
  return el("div.tools", {},
    found.state === "FAILED" && act("Retry", "Back in the queue.", "retry"),
    ["WAITING", "RUNNING"].includes(found.state) && act("Cancel", "Cancelled.", "cancel"),
    found.state === "WAITING" && act("Run next", "It is the next one.", "prioritise", { first: true }));
}

/** @param {Element} content @param {string} study @param {number} proposal */
async function showCurve(content, study, proposal) {
  const { curves } = await api(studyPath(study, "curves", { numbers: String(proposal) })).catch(() => ({ curves: [] }));
  const place = content.querySelector("[data-part=curve]");
  if (!place || !curves.length) return;
  const plot = new Curves("Curves of the training", { height: 200, legend: true });
  place.append(plot.element);
  plot.show(Object.entries(curves[0].curve).map(([label, y]) => ({ label, x: curves[0].epochs, y: /** @type {number[]} */ (y) })), "epoch", "");
}
