// @ts-check
/** Several studies: repeats of a search as a band, single ones as a line, and what their differences are worth. */

import { address, api, choice, el, fill, networkAnchor, number, seconds, section, settings, studyAnchor, studyLink, studyPath, view } from "../parts/page.js";
import { Curves } from "../parts/curves.js";
import { improvements, objectiveColumn, Points } from "../parts/points.js";
import { COLOURS } from "../parts/scatter.js";
import { Table } from "../parts/table.js";

const AXES = { number: "evaluations", seconds: "seconds of training, summed", epochs: "epochs, summed" };
/** Names of the axes in the interface. */
const AGAINST = { number: "evaluations", seconds: "seconds", epochs: "epochs" };
/** Most groups of studies with a colour each. */
export const MOST_STUDIES = 21;

/** @param {string[]} names @param {Record<string, string>} [more] */
function go(names, more = {}) {
  const query = new URLSearchParams(names.map((name) => ["study", name]));
  for (const [key, value] of Object.entries(more)) query.set(key, value);
  location.search = String(query);
}

/** Choices of the address that hold for other studies, too. @returns {Record<string, string>} */
const kept = () => Object.fromEntries(["x", "objective"].filter((name) => address.get(name)).map((name) => [name, /** @type {string} */ (address.get(name))]));

/** @param {string[]} wanted @param {() => HTMLElement} more what adds further studies */
export async function showStudies(wanted, more) {
  // One that was deleted, or is still in a basket, leaves the others.
  const answers = await Promise.allSettled(wanted.map((name) => Points.load(name)));
  const names = wanted.filter((_, at) => answers[at].status === "fulfilled");
  const loaded = answers.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const missing = answers.map((each) => (each.status === "rejected" ? el("p.bad", { role: "alert" }, each.reason.message) : null));
  if (!names.length) {
    fill(view, missing, more());
    return;
  }
  const by = /** @type {keyof typeof AXES} */ (Object.hasOwn(AXES, address.get("x") ?? "") ? address.get("x") : "number");
  const [known, objective] = objectives(loaded);
  const compared = await Promise.all(loaded.map((points) => inObjective(points, objective)));
  const shown = compared.filter((each) => each.objective);
  const curves = new Curves("Best value so far of each study", { height: 380, legend: true, stepped: true });
  const said = el("div.verdicts");
  const chosen = (/** @type {string} */ name) => (/** @type {string} */ value) => go(names, { ...kept(), [name]: value });
  const meanings = new Set(shown.map(({ points: { about }, objective: each }) => JSON.stringify([about.task, about.protocol, each])));
  fill(view, missing, section("Best so far", said, el("div.tools", {}, choice("against", Object.entries(AXES), by, chosen("x")),
    known.length > 1 && choice("objective", [...objective ? [] : [/** @type {[string, string]} */ (["", "the first of each"])], ...known.map((each) => /** @type {[string, string]} */ ([each, each]))], objective ?? "", chosen("objective"))),
    meanings.size > 1 && el("p.bad", {}, "These studies differ in task, protocol or objective: their values are not comparable."),
    compared.filter((each) => !each.objective).map(({ points }) => el("p.quiet", {}, `${points.about.study} has no objective ${objective}.`)), curves.element),
  section("Studies", table(compared).element), more());
  const title = [...new Set(shown.map((each) => each.objective.name))].join(" / ");
  // More lines could not be told apart.
  curves.show(shown.slice(0, COLOURS.length).map((each) => bestSoFar(each, by)), AXES[by], title);
  if (meanings.size !== 1 || shown.length < 2 || shown.some((each) => each.column !== "value")) return;
  await judge(names, by, said, (groups) => curves.show(bands(groups, shown.map((each) => bestSoFar(each, by))), AXES[by], title));
}

/** Judge at once, and again by the estimates of the recommended networks, which take seconds. @param {string[]} names @param {keyof typeof AXES} by @param {Element} said @param {(groups: any[]) => void} draw */
async function judge(names, by, said, draw) {
  for (const estimated of ["no", "yes"]) {
    const query = new URLSearchParams([...names.map((name) => ["study", name]), ["against", AGAINST[by]], ["estimated", estimated]]);
    const found = await api(`/api/comparison/studies?${query}`).catch((error) => {
      if (!said.children.length) fill(said, el("p.quiet", {}, error.message));
    });
    if (!found) return;
    const repeated = found.groups.some((/** @type {any} */ each) => each.band);
    fill(said, found.verdicts.map((/** @type {string} */ line, /** @type {number} */ at) => el(at ? "p" : "p.verdict", {}, line)),
      el("p.quiet", {}, repeated ? `A band is the middle half of the repeats of one search, its line the median. Compared after ${found.evaluations} evaluations each.`
        : estimated === "yes" ? "A band is the 95 % interval of the recommended network, from where the search found it. Repeats with other seeds would compare the agents." : "Estimating how sure this is …", found.groups.length > COLOURS.length && ` The best ${COLOURS.length} are drawn.`));
    draw(found.groups);
    // Repeats need no estimate.
    if (found.groups.every((/** @type {any} */ each) => each.band)) return;
  }
}

/** Groups as a median with its band, single studies as a line with its interval. @param {any[]} groups @param {any[]} lines */
function bands(groups, lines) {
  return groups.slice(0, COLOURS.length).flatMap((group, at) => {
    const colour = COLOURS[at];
    const edge = (/** @type {string} */ label, /** @type {number[]} */ x, /** @type {number[]} */ y, more = {}) => ({ label, x, y, colour, alpha: 0, quiet: true, unlisted: true, ...more });
    if (group.band) {
      const { x, low, median, high } = group.band;
      return [edge(`${group.name}, lower quartile`, x, low), edge(`${group.name}, upper quartile`, x, high, { band: colour }),
        { label: `${group.name} (median of ${group.studies.length})`, x, y: median, colour, strong: true }];
    }
    // Repeats that share no part of the axis are drawn one by one; a study without its cost is not drawn.
    const drawn = lines.filter((each) => group.studies.includes(each.label)).map((each) => ({ ...each, colour }));
    const [line] = drawn;
    if (group.low == null || drawn.length !== 1 || line.x.length < 2) return drawn;
    const span = line.x.slice(-2);
    return [edge(`${group.name}, low`, span, span.map(() => group.low)), edge(`${group.name}, high`, span, span.map(() => group.high), { band: colour }), line];
  });
}

/** @param {Compared[]} compared */
function table(compared) {
  const made = new Table([
    { name: "study", cell: (row) => studyAnchor(row.study) },
    { name: "best", numeric: true, cell: (row) => el("b", {}, number(row.best)) },
    { name: "network", cell: (row) => (row.network ? networkAnchor(row.network) : "–") },
    ...(compared.some((each) => settings(each.configuration)) ? [{ name: "configuration", cell: (/** @type {any} */ row) => settings(row.configuration) || "–" }] : []),
    { name: "evaluated", numeric: true },
    { name: "failed", numeric: true, wide: true },
    { name: "seconds", title: "training", numeric: true, wide: true, cell: (row) => seconds(row.seconds) },
    { name: "agent", tight: true, wide: true },
    { name: "task", tight: true, wide: true },
    { name: "protocol", tight: true, wide: true },
    { name: "space", wide: true },
    { name: "seed", numeric: true, wide: true },
  ], { link: (row) => studyLink(row.study) });
  made.show(compared.map((each) => row(each)));
  return made;
}

/**
 * All objectives of some studies, and the one to compare: the chosen one, or the first that all have.
 * @param {Points[]} loaded @returns {[string[], string | null]} null if each study has objectives of its own
 */
function objectives(loaded) {
  const names = loaded.map((points) => points.about.objectives.map((/** @type {any} */ each) => each.name));
  const known = [...new Set(names.flat())];
  const chosen = known.find((name) => name === address.get("objective"));
  return [known, chosen ?? known.find((name) => names.every((each) => each.includes(name))) ?? null];
}

/**
 * @typedef {object} Compared
 * @property {Points} points
 * @property {any} objective undefined if the study does not have it
 * @property {string} column
 * @property {number | null} best
 * @property {string | null} network
 * @property {Record<string, any>} configuration of the best network
 */

/** @param {Points} points @param {string | null} name @returns {Promise<Compared>} */
async function inObjective(points, name) {
  const { about } = points;
  const place = name === null ? 0 : about.objectives.findIndex((/** @type {any} */ each) => each.name === name);
  const compared = { points, objective: about.objectives[place], column: objectiveColumn(place) };
  if (place <= 0) return { ...compared, best: (place ? null : about.best?.value) ?? null, network: (place ? null : about.best?.architecture) ?? null,
    configuration: (place ? null : about.best?.configuration) ?? {} };
  // The points have no networks.
  const { best } = (await api(studyPath(about.study, "objectives"))).objectives[place];
  return { ...compared, best: best?.values[place] ?? null, network: best?.architecture ?? null, configuration: best?.configuration ?? {} };
}

/** @param {Compared} compared */
function row({ points, best, network, configuration }) {
  const { about } = points;
  const sum = points.spent("seconds").reduce((most, each) => (each > most ? each : most), 0);
  return { ...about, best, network, configuration, seconds: sum,
    evaluated: (about.counts.complete ?? 0) + (about.counts.pruned ?? 0), failed: about.counts.failed ?? 0 };
}

/** @param {Compared} compared @param {keyof typeof AXES} by */
function bestSoFar({ points, objective, column }, by) {
  const y = points.column(column);
  const whole = points.comparable().map((each, at) => Number(each && Number.isFinite(y[at])));
  const x = points.spent(by === "number" ? null : by);
  const sum = x.reduce((most, each) => (each > most ? each : most), 0);
  const steps = improvements(x, y, whole, objective.direction === "minimise" ? -1 : 1);
  const [xs, ys] = [steps.map((at) => x[at]), steps.map((at) => y[at])];
  if (steps.length && sum > xs[xs.length - 1]) {
    xs.push(sum);
    ys.push(ys[ys.length - 1]);
  }
  // uPlot needs increasing x: of equal ones, the last is the best.
  const last = xs.map((value, at) => value !== xs[at + 1]);
  return { label: points.about.study, x: xs.filter((_, at) => last[at]), y: ys.filter((_, at) => last[at]), strong: true };
}
