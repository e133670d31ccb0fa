// @ts-check
/** What the parts of a study's page share: its name, its results, the direction of its values, its proposals. */

import { address, carry } from "../parts/page.js";
import { showProposal } from "../parts/proposal.js";

export const name = address.get("study") ?? "";

/** @type {{ points: import("../parts/points.js").Points, changed: () => void }} */
export const study = { points: /** @type {any} */ (null), changed: () => {} };

export const sign = () => (study.points.about.direction === "minimise" ? -1 : 1);

/** Predictions are scores: larger is better. @param {number} score */
export const signed = (score) => sign() * score;

/** @param {number} proposal */
export function openNumber(proposal) {
  carry({ proposal: String(proposal) });
  showProposal(name, proposal, { closed: () => carry({ proposal: null }), changed: () => study.changed() });
}
