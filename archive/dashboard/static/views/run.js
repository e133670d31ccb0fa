// @ts-check
/** One recorded run: what it brought and changed, its curves, network, log, repeats, command and surroundings. */

import { address, api, el, failed, fill, isRefusal, moment, networkAnchor, number, one, plural, runLink, section, settingText, studyLink, studyPath, view } from "../parts/page.js";
import { commandLine, quote } from "../parts/copying.js";
import { Table } from "../parts/table.js";
import { NetworkViewer } from "../parts/viewer.js";
import { RunCurves } from "../run/curves.js";
import { showChange, showWords } from "../run/head.js";
import { gainText, runAnchor, stepItems } from "../run/words.js";

const study = address.get("study") ?? "";
const run = address.get("number") ?? "";
const RETRY = 2000;

async function start() {
  try {
    show(await api(`/api/run?${new URLSearchParams({ study, number: run })}`));
  } catch (error) {
    const refused = isRefusal(error);
    fill(view, section(refused && error.status === 404 ? "No such run" : "The run cannot be shown", el("p.bad", { role: "alert" }, error instanceof Error ? error.message : ""),
      el("p", {}, study ? el("a", { href: studyLink(study) }, `All runs of ${study}`) : el("a", { href: "/" }, "All studies"))));
    if (!refused) setTimeout(start, RETRY);
  }
}

/** @param {any} found */
function show(found) {
  document.title = `${study} #${found.number} · Architecture Archive`;
  const change = el("div.change");
  const words = el("div.words");
  const curves = new RunCurves({ height: 220 });
  showChange(change, found);
  showWords(words, found);
  const wayCard = found.ancestors.length > 0 && section("The way to it", way(found));
  const childrenCard = found.children.length > 0 && section("What came of it", children(found));
  const lower = [networkCard(found), found.log.length > 0 && section("End of its output", logOf(found.log))];
  fill(view,
    el("section.card.head", {}, el("div.title", {}, el("h1", {}, el("a", { href: studyLink(study) }, study), ` #${found.number}`), el("span.quiet", {}, [found.started && moment(Date.parse(found.started)), found.program].filter(Boolean).join(", "))),
      el("div.answer.of-run", {}, el("div.change-side", {}, change, found.curve && curves.element), words)),
    el("div.cards", {}, wayCard, childrenCard),
    ...lower,
    el("div.cards", {}, valuesCard(found), found.repeats.length > 1 && section("Its repeats", repeats(found)), metricsCard(found)),
    el("div.cards", {}, section("Command", ...command(found)), environmentCard(found)));
  // A plot has the width of its place.
  if (found.curve) curves.show(found);
}

/** The runs on the way to a run, with what each changed. @param {any} found */
function way(found) {
  const step = (/** @type {any} */ each) => el(each === found ? "li.shown" : "li", {}, each === found ? el("b", {}, `#${each.number}`) : runAnchor(study, each.number), " ",
    each.value === null ? each.state : el("b", {}, number(each.value)), " ", gainText(each.gain), el("div.what", {}, stepItems(each), each.motivation && el("span.because", {}, each.motivation)));
  const [first, ...others] = [...found.ancestors, found];
  const skipped = found.skipped_ancestors > 0 && el("li.quiet", {}, `${plural(found.skipped_ancestors, "step")} between`);
  return el("ol.steps", {}, step(first), skipped, others.map(step));
}

/** @param {any} found */
function children(found) {
  const table = new Table([
    { name: "number", title: "#", numeric: true, cell: (row) => runAnchor(study, row.number) },
    { name: "value", title: found.objective, numeric: true, cell: (row) => (row.value === null ? row.state : number(row.value)) },
    { name: "gain", title: "over this run", numeric: true, cell: (row) => gainText(row.gain) ?? "–" },
    { name: "steps", title: "what it changed", unsorted: true, cell: (row) => el("span.what", {}, stepItems(row), row.motivation && el("span.because", {}, row.motivation)) },
  ], { link: (row) => runLink(study, row.number) });
  table.show(found.children);
  return [table.element, found.further_children > 0 && el("p.quiet", {}, `and ${plural(found.further_children, "further run")}`)].filter(Boolean);
}

/** @param {any} found */
function valuesCard(found) {
  const differing = found.values.filter((/** @type {any} */ each) => each.differs);
  if (!found.values.length) return null;
  /** @type {import("../parts/table.js").Column[]} */
  const columns = [{ name: "name", title: "name" }, ...differing.length ? [{ name: "parent", title: "its parent", numeric: true, cell: (/** @type {any} */ row) => text(row.parent) }] : [],
    { name: "value", title: differing.length ? "this run" : "value", numeric: true, cell: (row) => (row.differs ? el("b", {}, text(row.value)) : text(row.value)) }];
  const table = new Table(columns);
  table.element.classList.add("tall");
  table.show(found.values);
  const note = differing.length ? `${plural(differing.length, "value")} of ${found.values.length} ${differing.length === 1 ? "differs" : "differ"}, in bold.` : found.parent === null ? null : "The same as its parent's.";
  return section(differing.length ? "Values beside its parent" : "Values", note && el("p.quiet", {}, note), table.element);
}

/** @param {any} value */
const text = (value) => (value === null || value === undefined ? "–" : settingText(value));

/** The network that a run trained, or what differs in it from the parent's. @param {any} found */
function networkCard(found) {
  if (!found.network) return null;
  const viewer = new NetworkViewer();
  const before = found.parent_network;
  if (before && before !== found.network) {
    const query = new URLSearchParams([["network", before], ["network", found.network]]);
    viewer.showPath(`/differences.svg?${query}&view=beside&theme=page`);
    return section("What changed in the network", el("p", {}, networkAnchor(before), " became ", networkAnchor(found.network), ". ", el("a", { href: `/compare?${query}` }, "Compare the two")), viewer.element);
  }
  viewer.show(found.network);
  return section("Its network", el("p", {}, networkAnchor(found.network), before ? ", the same as its parent's" : ""), viewer.element);
}

/** @param {string[]} lines */
function logOf(lines) {
  const box = el("pre.lines.output", { tabindex: 0, role: "group", "aria-label": "End of the output" }, lines.map((line) => `${line}\n`));
  // What a program says last is what explains its end.
  requestAnimationFrame(() => { box.scrollTop = box.scrollHeight; });
  return box;
}

/** @param {any} found */
function repeats(found) {
  const table = new Table([
    { name: "number", title: "#", numeric: true, cell: (row) => (row.number === found.number ? el("b", {}, `#${row.number}`) : runAnchor(study, row.number)) },
    { name: "seed", numeric: true, cell: (row) => number(row.seed) },
    { name: "value", title: found.objective, numeric: true, cell: (row) => (row.value === null ? row.state.toLowerCase() : number(row.value)) },
  ], { link: (row) => runLink(study, row.number), sort: "number" });
  table.element.classList.add("tall");
  table.show(found.repeats);
  return table.element;
}

/** @param {any} found */
function metricsCard(found) {
  const rows = Object.entries(found.metrics).map(([name, value]) => ({ name, value }));
  if (rows.length < 2) return null;
  const table = new Table([{ name: "name", title: "metric" }, { name: "value", numeric: true, cell: (row) => number(row.value) }]);
  table.element.classList.add("tall");
  table.show(rows);
  return section("Metrics", table.element);
}

/** @param {any} found */
function command(found) {
  const fact = (/** @type {string} */ title, /** @type {any} */ value) => (value === null || value === undefined || value === "" ? null : el("div", {}, el("dt", {}, title), el("dd", {}, value)));
  return [found.command.length > 0 && commandLine(found.command.map(quote).join(" ")),
    el("dl.facts", {}, fact("folder", found.folder && el("code", {}, found.folder)), fact("exit status", found.exit_status), fact("cause", found.cause), fact("ended", found.finished && moment(found.finished)),
      fact("commit", found.commit && el("code", {}, found.commit)), fact("branch", found.branch), fact("recorded by", found.agent)),
    found.kept.length > 0 && [el("h3", {}, "Kept files"), el("ul.kept", {}, found.kept.map((/** @type {string} */ path) => el("li", {}, el("code", {}, path))))]].flat().filter(Boolean);
}

/** @param {any} found */
function environmentCard(found) {
  const facts = Object.entries(found.environment.facts);
  const packages = Object.entries(found.environment.packages);
  if (!facts.length && !packages.length && !found.hardware) return null;
  return section("Surroundings", el("dl.facts", {}, found.hardware && el("div", {}, el("dt", {}, "device"), el("dd", {}, found.hardware)), facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value))))),
    packages.length > 0 && el("details", {}, el("summary", {}, plural(packages.length, "package")), el("pre", { tabindex: 0, role: "group", "aria-label": "Packages" }, packages.map(([name, version]) => `${name} ${version}`).join("\n"))));
}

start();
one("#view").focus({ preventScroll: true });
