// @ts-check
/** The head of a study of recorded runs: the best run, what it changed, and how sure it is. */

import { api, el, failed, fill } from "../parts/page.js";
import { whenSeen } from "../parts/timing.js";
import { RunCurves } from "../run/curves.js";
import { showChange, showWords } from "../run/head.js";
import { name, study } from "./state.js";

const change = el("div.change");
const curves = new RunCurves({ height: 220 });
curves.element.hidden = true;
const words = el("div.words");

export const bestRunPart = el("div.answer.of-run", {}, el("div.change-side", {}, change, curves.element), words);
export const refreshBestRun = whenSeen(bestRunPart, load, 3000);

async function load() {
  if (!study.points.about.best) {
    showNothing();
    return;
  }
  try {
    const run = await api(`/api/run?${new URLSearchParams({ study: name, number: "best" })}`);
    showChange(change, run);
    showWords(words, run, { link: true });
    bestRunPart.classList.remove("open");
    // A plot has the width of what is seen.
    curves.element.hidden = !run.curve;
    if (run.curve) curves.show(run);
  } catch (error) {
    return failed(words, error);
  }
}

function showNothing() {
  bestRunPart.classList.add("open");
  fill(words, el("p.quiet", {}, "No run has a result yet: the table below has the reasons. The next one is recorded by ", el("code", {}, "archive record -- COMMAND"), "."));
}
