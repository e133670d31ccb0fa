// @ts-check
/** Several studies, or two networks, side by side; the address has all of them. */

import { address, api, carry, choice, drawing, el, failed, fill, networkAnchor, number, picture, seconds, section, settings, settingText, studyAnchor, studyLink, studyPath, view, word } from "../parts/page.js";
import { Curves } from "../parts/curves.js";
import { improvements, objectiveColumn, Points } from "../parts/points.js";
import { Table } from "../parts/table.js";

const AXES = { number: "evaluations", seconds: "seconds of training, summed", epochs: "epochs, summed" };
const MOST = 7;

/** @param {string} key */
const keep = (key) => address.getAll(key).filter(Boolean);

/** @param {string} name @param {string[]} values @param {Record<string, string>} [more] */
function go(name, values, more = {}) {
  const query = new URLSearchParams(values.map((value) => [name, value]));
  for (const [key, value] of Object.entries(more)) query.set(key, value);
  location.search = String(query);
}

/** Choices of the address that hold for other studies, too. @returns {Record<string, string>} */
const kept = () => Object.fromEntries(["x", "objective"].filter((name) => address.get(name)).map((name) => [name, /** @type {string} */ (address.get(name))]));

/** @param {any[]} studies @param {string[]} chosen */
function picker(studies, chosen) {
  const boxes = studies.map((each) => /** @type {HTMLInputElement} */ (el("input", { type: "checkbox", value: each.name, checked: chosen.includes(each.name) })));
  const full = el("p.bad", { role: "alert", hidden: true }, `At most ${MOST} studies are compared: clear some.`);
  const compare = (/** @type {Event} */ event) => {
    event.preventDefault();
    const names = boxes.filter((each) => each.checked).map((each) => each.value);
    full.hidden = names.length <= MOST;
    if (full.hidden) go("study", names, kept());
  };
  const keys = [0, 1].map((at) => /** @type {HTMLInputElement} */ (el("input", { required: true, placeholder: `key of network ${at + 1}`, "aria-label": `Key of network ${at + 1}`, value: keep("network")[at] ?? "" })));
  return el("div.cards", {},
    section("Studies", el("form", { onsubmit: compare },
      el("div.checks", {}, studies.map((each, at) => el("label", {}, boxes[at], ` ${each.name} `, el("span.quiet", {}, `${each.task}, ${each.agent ?? "–"}`)))),
      full, studies.length ? el("button.primary", {}, "Compare") : el("p.quiet", {}, "No study yet."))),
    section("Two networks", el("form.tools", { onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); go("network", keys.map((each) => each.value.trim())); } },
      keys, el("button.primary", {}, "Compare"))));
}

/** @param {string[]} names */
async function studies(names) {
  const loaded = await Promise.all(names.map((name) => Points.load(name)));
  const by = /** @type {keyof typeof AXES} */ (Object.hasOwn(AXES, address.get("x") ?? "") ? address.get("x") : "number");
  const [known, objective] = objectives(loaded);
  const compared = await Promise.all(loaded.map((points) => inObjective(points, objective)));
  const shown = compared.filter((each) => each.objective);
  const curves = new Curves("Best value so far of each study", { height: 380, legend: true, stepped: true });
  const chosen = (/** @type {string} */ name) => (/** @type {string} */ value) => go("study", names, { ...kept(), [name]: value });
  const table = new Table([
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
  table.show(compared.map((each) => row(each)));
  const meanings = new Set(shown.map(({ points: { about }, objective: each }) => JSON.stringify([about.task, about.protocol, each])));
  fill(view, section("Best so far", el("div.tools", {}, choice("against", Object.entries(AXES), by, chosen("x")),
    known.length > 1 && choice("objective", [...objective ? [] : [/** @type {[string, string]} */ (["", "the first of each"])], ...known.map((each) => /** @type {[string, string]} */ ([each, each]))], objective ?? "", chosen("objective"))),
    meanings.size > 1 && el("p.bad", {}, "These studies differ in task, protocol or objective: their values are not comparable."),
    compared.filter((each) => !each.objective).map(({ points }) => el("p.quiet", {}, `${points.about.study} has no objective ${objective}.`)), curves.element),
  section("Studies", table.element), picker((await api("/api/studies")).studies, names));
  curves.show(shown.map((each) => bestSoFar(each, by)), AXES[by], [...new Set(shown.map((each) => each.objective.name))].join(" / "));
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

/** @param {string[]} keys */
async function networks(keys) {
  const both = await Promise.all(keys.map((key) => api(`/api/networks/${encodeURIComponent(key)}`)));
  const distances = el("div", {}, el("p.quiet", {}, "Comparing …"));
  const difference = el("div", {}, el("p.quiet", {}, "Comparing …"));
  const facts = ["space", "layers", "edges", "depth", "params", "flops", "mass"];
  const table = new Table([{ name: "fact", title: "", cell: (row) => (facts.includes(row.fact) ? word("quantities", row.fact) : row.fact) }, { name: "first", title: both[0].key.slice(0, 10), numeric: true }, { name: "second", title: both[1].key.slice(0, 10), numeric: true }]);
  const rows = facts.filter((name) => both.some((each) => each[name] !== undefined)).map((fact) => ({ fact, first: number(both[0][fact]), second: number(both[1][fact]) }));
  const names = [...new Set(both.flatMap((each) => Object.keys(each.configuration)))];
  const value = (/** @type {any} */ network, /** @type {string} */ name) => (Object.hasOwn(network.configuration, name) ? settingText(network.configuration[name]) : "–");
  table.show([...rows, ...names.map((fact) => ({ fact, first: value(both[0], fact), second: value(both[1], fact) }))]);
  fill(view,
    el("div.cards", {}, both.map((each) => section(`Network ${each.key.slice(0, 10)}`, el("p", {}, networkAnchor(each.key)),
      picture(each.key, each.text)))),
    el("div.cards", {}, section("Properties", table.element), section("Evaluations", common(both))),
    section("Difference", difference),
    section("Distances", distances),
    picker((await api("/api/studies")).studies, []));
  showDifference(difference, both.map((each) => each.key), both.every((each) => each.space === "torch")).catch((error) => failed(difference, error));
  // The first comparison of a server compiles kernels.
  showDistances(distances, both.map((each) => each.key)).catch((error) => failed(distances, error));
}

/** @param {Element} place @param {string[]} keys @param {boolean} named whether the networks have blocks */
async function showDifference(place, keys, named) {
  const kernel = address.get("kernel") === "otmann" ? "otmann" : "edit";
  const query = new URLSearchParams([...keys.map((key) => ["network", key]), ["kernel", kernel]]);
  const found = await api(`/api/difference?${query}`);
  const table = new Table([
    { name: "subject", title: "part", cell: (row) => word("parts", row.subject) },
    { name: "change" },
    { name: "first", title: keys[0].slice(0, 10), cell: (row) => row.first || "–" },
    { name: "second", title: keys[1].slice(0, 10), cell: (row) => row.second || "–" },
    { name: "cost", numeric: true, cell: (row) => number(row.cost) },
    { name: "reason", wide: true },
  ], { sort: "cost", descending: true, empty: "the networks are equal" });
  table.show(found.parts.filter((/** @type {any} */ part) => part.cost > 0));
  const kernels = [["edit", "edit script"], ["otmann", "OTMANN's transport"]].map(([value, text]) => /** @type {[string, string]} */ ([value, text]));
  fill(place, named && el("ul", {}, found.changes.map((/** @type {string} */ line) => el("li", {}, line))), el("div.tools", {}, choice("by", kernels, kernel, (value) => { carry({ kernel: value }); showDifference(place, keys, named).catch((error) => failed(place, error)); }),
    el("span.quiet", {}, `${found.component}: ${number(found.distance)}, the sum of what costs something`)),
  el("div.cards", {}, drawing(`/differences.svg?${query}&`, "Both networks, with what is matched, changed, inserted and removed"), table.element));
}

/** @param {Element} place @param {string[]} keys */
async function showDistances(place, keys) {
  const pair = await api(`/api/comparison?${new URLSearchParams(keys.map((key) => ["network", key]))}`);
  const table = new Table([{ name: "kernel" }, { name: "component" }, { name: "distance", numeric: true, cell: (each) => number(each.distance) }],
    { empty: pair.one_space ? "no kernel is defined on both" : "networks of different spaces have no distance" });
  table.show(pair.distances);
  fill(place, table.element, Object.keys(pair.left_out).length > 0 && el("p.quiet", {}, `Not defined on these: ${Object.keys(pair.left_out).join(", ")}`));
}

/**
 * The values of one objective, each training once, however often its result was reused; of pruned trainings only where
 * both networks have no others. @param {any[]} both
 */
function common(both) {
  const rows = new Map();
  const whole = both.some((network) => network.evaluations.some((/** @type {any} */ each) => !each.partial));
  both.forEach((network, at) => {
    const trainings = new Set();
    for (const each of network.evaluations) {
      if (whole && each.partial) continue;
      const name = JSON.stringify([each.task, each.protocol, each.objective]);
      const training = name + (each.answered_from?.replace(" (deleted)", "") ?? each.evaluation);
      if (trainings.has(training)) continue;
      trainings.add(training);
      const row = rows.get(name) ?? { task: each.task, protocol: each.protocol, objective: each.objective ?? "–", values: [[], []] };
      row.values[at].push(each.value);
      rows.set(name, row);
    }
  });
  const mean = (/** @type {number[]} */ values) => (values.length ? `${number(values.reduce((sum, each) => sum + each, 0) / values.length)}${values.length > 1 ? ` (${values.length})` : ""}` : "–");
  const table = new Table([{ name: "task" }, { name: "protocol", wide: true }, { name: "objective" }, { name: "first", title: both[0].key.slice(0, 10), numeric: true, cell: (row) => mean(row.values[0]) },
    { name: "second", title: both[1].key.slice(0, 10), numeric: true, cell: (row) => mean(row.values[1]) }], { empty: "neither was evaluated" });
  table.show([...rows.values()]);
  return table.element;
}

async function start() {
  try {
    if (keep("network").length === 2) await networks(keep("network"));
    else if (keep("study").length) await studies([...new Set(keep("study"))].slice(0, MOST));
    else fill(view, picker((await api("/api/studies")).studies, []));
  } catch (error) {
    failed(view, error);
  }
}

start();
