// @ts-check
/** One network: picture, every evaluation anywhere, relatives, nearest ones, and its graph to copy. */

import {
  address, api, carry, change, choice, el, failed, fill, mayWrite, moment, networkAnchor, networkLink, number, operationWords, plainWord, quantity, Refused,
  seconds, section, settings, studyLink, view, word,
} from "../parts/page.js";
import { comparing } from "../parts/basket.js";
import { copied } from "../parts/copying.js";
import { noteOf } from "../parts/note.js";
import { NetworkViewer } from "../parts/viewer.js";
import { Table } from "../parts/table.js";

const key = (address.get("key") ?? "").trim();

/** @param {any} found */
function show(found) {
  const title = found.model ?? found.key.slice(0, 10);
  document.title = `${title} · Architecture Archive`;
  const fact = (/** @type {string | HTMLElement} */ name, /** @type {any} */ value) => value === null || value === undefined ? null : el("div", {}, el("dt", {}, name), el("dd", {}, value));
  const viewer = new NetworkViewer();
  viewer.show(found.key);
  fill(view,
    el("section.card.head", {}, el("div.title", {}, el("h1", {}, found.model ? title : ["Network ", el("code", {}, title)])),
      el("div.answer", {}, viewer.element, el("div.words", {}, ...results(found),
        el("dl.facts", {}, fact("space", found.space), fact("layers", found.layers), fact("depth", found.depth),
          ["params", "flops", "mass"].map((name) => fact(word("quantities", name), found[name] === undefined ? null : quantity(found[name]))),
          fact("configuration", settings(found.configuration) || null), fact("builds", found.network && networkAnchor(found.network)),
          fact("built from", found.configurations.length ? found.configurations.slice(0, 12).map((/** @type {string} */ each) => [networkAnchor(each), " "]).flat() : null),
          fact("key", el("code", {}, found.key))),
        noteOf({ network: found.key }, found.note ?? "", found.tags ?? []).element, actions(found)))),
    (found.evaluations.length > 0 || found.proposals.length > 0) && section("Evaluations", evaluations(found)),
    nearest(found),
    el("div.cards", {}, found.parents.length > 0 && section("Parents", relatives(found.parents)), found.children.length > 0 && section("Children", relatives(found.children))),
    el("div.cards", {}, found.space === "torch" && section("Blocks", blocks(found.outline)), found.graph && section("Layers", layers(found.graph))),
    found.text && section("As text", el("details", {}, el("summary", {}, "Show"), el("pre", {}, found.text))));
}

/** Most tasks whose results the head shows. */
const TASKS = 8;

/** The best result on the task with most of them, large, and the other tasks below. @param {any} found */
function results(found) {
  const groups = groupsOf(found.evaluations);
  if (!groups.length) return [el("p.eyebrow", {}, "Not evaluated yet"), el("p", {}, "Its value will be here once a study has trained it.")];
  const [first, ...others] = groups;
  return [el("p.eyebrow", {}, el("i.star", {}, "★"), ` Best on ${first.task}`),
    el("p.value", {}, el("b", {}, number(first.best)), el("span", {}, el("span", {}, first.name), el("span.quiet", {}, spread(first)))),
    others.length > 0 && el("ul.beaten.ranges", {}, others.slice(0, TASKS).map((group) => el("li", {}, el("b", {}, number(group.best)), el("span", {}, group.task === first.task ? group.name : `${group.task}, ${group.name}`), el("span.quiet.number", {}, spread(group)))))];
}

/** @typedef {{ task: string, name: string, best: number, worst: number, count: number }} Group results of one task in one objective */

/** Whole results by task and objective, most results first. @param {any[]} evaluations @returns {Group[]} */
function groupsOf(evaluations) {
  /** @type {Map<string, any[]>} */
  const rows = new Map();
  const counted = new Set();
  for (const row of evaluations) {
    if (row.partial || row.predicted || row.value === null) continue;
    // A training whose result is reused is one result, also where its own study was deleted.
    const training = JSON.stringify([row.task, row.protocol, row.objective, (row.answered_from ?? row.evaluation).replace(" (deleted)", "")]);
    if (counted.has(training)) continue;
    counted.add(training);
    const name = row.objective ?? Object.keys(row.metrics).find((metric) => row.metrics[metric] === row.value) ?? "value";
    const key = JSON.stringify([row.task, name, row.direction]);
    rows.set(key, [...rows.get(key) ?? [], row.value]);
  }
  const groups = [...rows].map(([key, values]) => {
    const [task, name, direction] = JSON.parse(key);
    const [least, most] = [Math.min(...values), Math.max(...values)];
    return direction === "minimise" ? { task, name, best: least, worst: most, count: values.length } : { task, name, best: most, worst: least, count: values.length };
  });
  return groups.sort((one, other) => other.count - one.count);
}

/** How far the results of a group lie apart. @param {Group} group */
function spread({ best, worst, count }) {
  if (count === 1) return "one result";
  return best === worst ? `the same in ${count} results` : `${number(Math.min(best, worst))} to ${number(Math.max(best, worst))} in ${count} results`;
}

/** @param {any} found */
function actions(found) {
  const copy = (/** @type {string} */ title, /** @type {() => string} */ text) => el("button.small", { type: "button", onclick: () => copied(text()) }, title);
  const study = /** @type {HTMLInputElement} */ (el("input", { placeholder: "study", "aria-label": "Study", size: 14 }));
  return el("div.tools.acts", {},
    el("a.button", { href: "#nearest", onclick: () => findNearest() }, "Similar networks"),
    comparing("network", found.key, { long: true, text: found.model }),
    el("a.button", { href: `/compare?network=${found.key}` }, "Compare with …"),
    copy("Copy key", () => found.key),
    found.graph && copy("Copy JSON", () => JSON.stringify(found.graph)),
    copy("Copy Python", () => `import archive\n\nwith archive.connect() as store:\n    network = store.architectures.get("${found.key}")\n`),
    mayWrite && el("form.tools", { onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); enqueue(found.key, study.value.trim()); } },
      study, el("button.small", {}, "Propose there")));
}

/** @param {string} network @param {string} study */
async function enqueue(network, study) {
  const done = await change("Proposed.", "enqueue", { network, study });
  if (done) location.href = `${studyLink(study)}&proposal=${done.number}`;
}

/** @param {any} found */
function evaluations(found) {
  const table = new Table([
    { name: "task" },
    { name: "value", numeric: true, cell: (row) => el("b", {}, number(row.value)) },
    { name: "evaluation", cell: (row) => (row.study === null ? el("span", { title: row.evaluation }, row.evaluation.split("/").pop()) : el("a", { href: `${studyLink(row.study)}&proposal=${row.number}` }, row.evaluation)) },
    { name: "objective", wide: true, optional: true, cell: (row) => row.objective ?? "–" },
    { name: "protocol", wide: true },
    { name: "epochs", numeric: true, wide: true, optional: true, cell: (row) => (row.partial ? `${number(row.epochs)}, pruned` : number(row.epochs)) },
    { name: "seconds", title: "time", numeric: true, wide: true, optional: true, cell: (row) => (row.answered_from ? "reused" : seconds(row.seconds)) },
    { name: "created", tight: true, wide: true, cell: (row) => moment(row.created) },
  ], { sort: "task", empty: "never evaluated" });
  table.element.classList.add("tall");
  table.show(found.evaluations);
  const metrics = found.evaluations.flatMap((/** @type {any} */ each) => Object.entries(each.metrics).map(([name, value]) => `${each.evaluation}  ${name}  ${number(value)}`));
  return [table.element, found.proposals.length > 0 && el("p", {}, "Also proposed: ", found.proposals.map((/** @type {any} */ each) => [el("a", { href: `${studyLink(each.study)}&proposal=${each.number}` }, each.id), ` (${each.state.toLowerCase()}) `]).flat()),
    metrics.length > 0 && el("details", {}, el("summary", {}, "All metrics"), el("pre", {}, metrics.join("\n")))];
}

/** @param {any[]} rows */
function relatives(rows) {
  const table = new Table([
    { name: "key", title: "network", cell: (row) => networkAnchor(row.key) },
    { name: "operations", cell: (row) => (row.operations.length ? el("span", {}, operationWords(row.operations)) : "–"), key: (row) => row.operations.join() },
    { name: "values", numeric: true, cell: (row) => ranges(row.values), key: (row) => row.values[0]?.largest },
    { name: "evaluations", numeric: true, wide: true },
    { name: "tasks", wide: true, cell: (row) => [...new Set(row.values.map((/** @type {any} */ each) => each.task))].join(", ") },
  ], { link: (row) => networkLink(row.key), empty: "none on record", sort: "key" });
  table.show(rows);
  return table.element;
}

/** A range for each objective, since values of different ones have no common range. @param {any[]} values */
function ranges(values) {
  if (!values.length) return "–";
  return values.map(({ objective, lowest, largest }) => el("div", {}, lowest === largest ? number(largest) : `${number(lowest)} … ${number(largest)}`,
    values.length > 1 && el("span.quiet", {}, ` ${objective ?? "imported"}`)));
}

let findNearest = () => {};

/** @param {any} found */
function nearest(found) {
  const place = el("div");
  const tools = el("div.tools", {}, el("button", { type: "button", onclick: () => findNearest() }, "Find the nearest networks"),
    el("span.quiet", {}, "compares with all networks of the space; the first time takes longest"));
  async function load(/** @type {string} */ kernel) {
    fill(place, el("p.quiet", { role: "status" }, "Comparing …"));
    try {
      const near = await api(`/api/networks/${found.key}/nearest?k=15&kernel=${encodeURIComponent(kernel)}`);
      const table = new Table([
        { name: "key", title: "network", cell: (row) => networkAnchor(row.key, row.model) },
        { name: "distance", numeric: true, cell: (row) => number(row.distance) },
        { name: "layers", numeric: true, wide: true },
        { name: "edges", numeric: true, wide: true },
        { name: "evaluations", numeric: true },
        { name: "compare", title: "", cell: (row) => el("a", { href: `/compare?network=${found.key}&network=${row.key}` }, "compare") },
      ], { link: (row) => networkLink(row.key), empty: "no other network of this space" });
      table.show(near.neighbours);
      carry({ kernel: near.kernel });
      fill(tools, choice("kernel", near.kernels.map((/** @type {string} */ each) => [each, each]), near.kernel, load), el("span.quiet", {}, `${near.compared} of ${near.among} compared in full`));
      fill(place, table.element);
    } catch (error) {
      failed(place, error);
    }
  }
  let asked = false;
  findNearest = () => {
    if (!asked) load(address.get("kernel") ?? "");
    asked = true;
  };
  const card = section("Nearest networks", tools, place);
  card.id = "nearest";
  const wanted = location.hash === "#nearest";
  if (wanted || address.get("kernel")) findNearest();
  // Pictures above it still grow.
  if (wanted) requestAnimationFrame(() => card.scrollIntoView());
  return card;
}

/** @param {any[]} outline */
function blocks(outline) {
  const table = new Table([{ name: "section" }, { name: "kind", title: "blocks" }, { name: "channels", numeric: true, cell: (row) => row.channels ?? "–" }, { name: "size" }, { name: "details", wide: true },
    ...(outline.some((row) => row.source) ? [{ name: "source", wide: true }] : [])]);
  table.show(outline);
  return table.element;
}

/** @param {any} graph */
function layers(graph) {
  /** @type {Map<number, number[]>} */
  const heads = new Map();
  for (const [tail, head] of graph.edges) heads.set(tail, [...(heads.get(tail) ?? []), head]);
  const table = new Table([
    { name: "index", title: "layer" },
    { name: "op", title: "operation", cell: (row) => (row.op === "parameter" ? settings({ [row.attributes.name]: row.attributes.value ?? row.attributes.json }) : plainWord("layers", row.op)) },
    { name: "units", numeric: true, cell: (row) => row.units ?? "–" },
    { name: "stride", numeric: true, wide: true, cell: (row) => row.stride ?? 1 },
    { name: "feeds", cell: (row) => row.feeds.join(" ") || "–" },
  ]);
  table.show(graph.layers.map((/** @type {any} */ layer, /** @type {number} */ index) => ({ ...layer, index, feeds: heads.get(index) ?? [] })));
  return table.element;
}

async function search() {
  const place = el("div");
  const { networks } = await api(`/api/networks?find=${encodeURIComponent(key)}`);
  const table = new Table([{ name: "key", title: "network", cell: (row) => networkAnchor(row.key) }, { name: "space" }, { name: "layers", numeric: true }],
    { link: (row) => networkLink(row.key), empty: "no network begins so" });
  table.show(networks);
  fill(place, table.element);
  fill(view, section(key ? `Networks that begin with ${key}` : "Networks", place));
}

async function start() {
  if (!key) return search();
  try {
    show(await api(`/api/networks/${encodeURIComponent(key)}`));
  } catch (error) {
    if (error instanceof Refused && error.status < 500) search().catch((again) => failed(view, again));
    else failed(view, error);
  }
}

start();
