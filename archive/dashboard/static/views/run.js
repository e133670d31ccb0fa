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
const numberText = address.get("number") ?? "";
const RETRY = 2000;

async function start() {
  try {
    show(await api(`/api/run?${new URLSearchParams({ study, number: numberText })}`));
  } catch (error) {
    const refused = isRefusal(error);
    fill(view, section(refused && error.status === 404 ? "No such run" : "The run cannot be shown", el("p.bad", { role: "alert" }, error instanceof Error ? error.message : ""),
      el("p", {}, study ? el("a", { href: studyLink(study) }, `All runs of ${study}`) : el("a", { href: "/" }, "All studies"))));
    if (!refused) setTimeout(start, RETRY);
  }
}

/** @param {any} run */
function show(run) {
  document.title = `${study} #${run.number} · Architecture Archive`;
  const change = el("div.change");
  const words = el("div.words");
  const curves = new RunCurves({ height: 220 });
  showChange(change, run);
  showWords(words, run);
  const wayCard = run.ancestors.length > 0 && section("The way to it", way(run));
  const childrenCard = run.children.length > 0 && section("What came of it", children(run));
  const lower = [networkCard(run), run.log.length > 0 && section("End of its output", logOf(run.log))];
  fill(view,
    el("section.card.head", {}, el("div.title", {}, el("h1", {}, el("a", { href: studyLink(study) }, study), ` #${run.number}`), el("span.quiet", {}, [run.started && moment(Date.parse(run.started)), run.program].filter(Boolean).join(", "))),
      el("div.answer.of-run", {}, el("div.change-side", {}, change, run.curve && curves.element), words)),
    el("div.cards", {}, wayCard, childrenCard),
    ...lower,
    el("div.cards", {}, valuesCard(run), run.repeats.length > 1 && section("Its repeats", repeats(run)), metricsCard(run)),
    el("div.cards", {}, section("Command", ...command(run)), environmentCard(run)));
  // A plot has the width of its place.
  if (run.curve) curves.show(run);
}

/** The runs on the way to a run, with what each changed. @param {any} run */
function way(run) {
  const step = (/** @type {any} */ each) => el(each === run ? "li.shown" : "li", {}, each === run ? el("b", {}, `#${each.number}`) : runAnchor(study, each.number), " ",
    each.value === null ? each.state : el("b", {}, number(each.value)), " ", gainText(each.gain), el("div.what", {}, stepItems(each), each.motivation && el("span.because", {}, each.motivation)));
  const [first, ...others] = [...run.ancestors, run];
  const skipped = run.skipped_ancestors > 0 && el("li.quiet", {}, `${plural(run.skipped_ancestors, "step")} between`);
  return el("ol.steps", {}, step(first), skipped, others.map(step));
}

/** @param {any} run */
function children(run) {
  const table = new Table([
    { name: "number", title: "#", numeric: true, cell: (row) => runAnchor(study, row.number) },
    { name: "value", title: run.objective, numeric: true, cell: (row) => (row.value === null ? row.state : number(row.value)) },
    { name: "gain", title: "over this run", numeric: true, cell: (row) => gainText(row.gain) ?? "–" },
    { name: "steps", title: "what it changed", unsorted: true, cell: (row) => el("span.what", {}, stepItems(row), row.motivation && el("span.because", {}, row.motivation)) },
  ], { link: (row) => runLink(study, row.number) });
  table.show(run.children);
  return [table.element, run.further_children > 0 && el("p.quiet", {}, `and ${plural(run.further_children, "further run")}`)].filter(Boolean);
}

/** @param {any} run */
function valuesCard(run) {
  const differing = run.values.filter((/** @type {any} */ each) => each.differs);
  if (!run.values.length) return null;
  /** @type {import("../parts/table.js").Column[]} */
  const columns = [{ name: "name", title: "name" }, ...differing.length ? [{ name: "parent", title: "its parent", numeric: true, cell: (/** @type {any} */ row) => text(row.parent) }] : [],
    { name: "value", title: differing.length ? "this run" : "value", numeric: true, cell: (row) => (row.differs ? el("b", {}, text(row.value)) : text(row.value)) }];
  const table = new Table(columns);
  table.element.classList.add("tall");
  table.show(run.values);
  const note = differing.length ? `${plural(differing.length, "value")} of ${run.values.length} ${differing.length === 1 ? "differs" : "differ"}, in bold.` : run.parent === null ? null : "The same as its parent's.";
  return section(differing.length ? "Values beside its parent" : "Values", note && el("p.quiet", {}, note), table.element);
}

/** @param {any} value */
const text = (value) => (value === null || value === undefined ? "–" : settingText(value));

/** The network that a run trained, or what differs in it from the parent's. @param {any} run */
function networkCard(run) {
  if (!run.network) return null;
  const viewer = new NetworkViewer();
  const before = run.parent_network;
  if (before && before !== run.network) {
    const query = new URLSearchParams([["network", before], ["network", run.network]]);
    viewer.showPath(`/differences.svg?${query}&view=beside&theme=page`);
    return section("What changed in the network", el("p", {}, networkAnchor(before), " became ", networkAnchor(run.network), ". ", el("a", { href: `/compare?${query}` }, "Compare the two")), viewer.element);
  }
  viewer.show(run.network);
  return section("Its network", el("p", {}, networkAnchor(run.network), before ? ", the same as its parent's" : ""), viewer.element);
}

/** @param {string[]} lines */
function logOf(lines) {
  const box = el("pre.lines.output", { tabindex: 0, role: "group", "aria-label": "End of the output" }, lines.map((line) => `${line}\n`));
  // What a program says last is what explains its end.
  requestAnimationFrame(() => { box.scrollTop = box.scrollHeight; });
  return box;
}

/** @param {any} run */
function repeats(run) {
  const table = new Table([
    { name: "number", title: "#", numeric: true, cell: (row) => (row.number === run.number ? el("b", {}, `#${row.number}`) : runAnchor(study, row.number)) },
    { name: "seed", numeric: true, cell: (row) => number(row.seed) },
    { name: "value", title: run.objective, numeric: true, cell: (row) => (row.value === null ? row.state.toLowerCase() : number(row.value)) },
  ], { link: (row) => runLink(study, row.number), sort: "number" });
  table.element.classList.add("tall");
  table.show(run.repeats);
  return table.element;
}

/** @param {any} run */
function metricsCard(run) {
  const rows = Object.entries(run.metrics).map(([name, value]) => ({ name, value }));
  if (rows.length < 2) return null;
  const table = new Table([{ name: "name", title: "metric" }, { name: "value", numeric: true, cell: (row) => number(row.value) }]);
  table.element.classList.add("tall");
  table.show(rows);
  return section("Metrics", table.element);
}

/** @param {any} run */
function command(run) {
  const fact = (/** @type {string} */ title, /** @type {any} */ value) => (value === null || value === undefined || value === "" ? null : el("div", {}, el("dt", {}, title), el("dd", {}, value)));
  const line = run.command.map(quote).join(" ");
  return [run.command.length > 0 && (run.is_whole_command ? commandLine(line) : el("div.command", {}, el("code", {}, line))),
    el("dl.facts", {}, fact("folder", run.folder && el("code", {}, run.folder)), fact("exit status", run.exit_status), fact("cause", run.cause), fact("ended", run.finished && moment(run.finished)),
      fact("commit", run.commit && el("code", {}, run.commit)), fact("branch", run.branch), fact("recorded by", run.agent)),
    run.kept.length > 0 && [el("h3", {}, "Kept files"), el("ul.kept", {}, run.kept.map((/** @type {string} */ path) => el("li", {}, el("code", {}, path))))]].flat().filter(Boolean);
}

/** @param {any} run */
function environmentCard(run) {
  const facts = Object.entries(run.environment.facts);
  const packages = Object.entries(run.environment.packages);
  if (!facts.length && !packages.length && !run.hardware) return null;
  return section("Surroundings", el("dl.facts", {}, run.hardware && el("div", {}, el("dt", {}, "device"), el("dd", {}, run.hardware)), facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value))))),
    packages.length > 0 && el("details", {}, el("summary", {}, plural(packages.length, "package")), el("pre", { tabindex: 0, role: "group", "aria-label": "Packages" }, packages.map(([name, version]) => `${name} ${version}`).join("\n"))));
}

start();
one("#view").focus({ preventScroll: true });
