// @ts-check
/** What the parts of a study's page share: its name, its results, the direction of its values, its proposals. */

import { address, carry, runLink } from "../parts/page.js";
import { showProposal } from "../parts/proposal.js";

export const name = address.get("study") ?? "";

/** @type {{ points: import("../parts/points.js").Points, changed: () => void }} */
export const study = { points: /** @type {any} */ (null), changed: () => {} };

export const sign = () => (study.points.about.direction === "minimise" ? -1 : 1);

/** Predictions are scores: larger is better. @param {number} score */
export const signed = (score) => sign() * score;

/** Whether the study is of recorded runs (`archive record`). */
export const isRecorded = () => study.points.about.space === "program";

/** @param {number} proposal */
export function openNumber(proposal) {
  if (isRecorded()) {
    // An address that names a run is no step of the history of the browser.
    if (address.has("proposal")) location.replace(runLink(name, proposal));
    else location.href = runLink(name, proposal);
    return;
  }
  carry({ proposal: String(proposal) });
  showProposal(name, proposal, { closed: () => carry({ proposal: null }), changed: () => study.changed() });
}
