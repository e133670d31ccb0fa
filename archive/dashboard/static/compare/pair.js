// @ts-check
/** Two networks side by side: which is better on what, why, and the difference drawn. */

import { comparing } from "../parts/basket.js";
import { address, api, carry, choice, el, failed, fill, networkLink, number, pick, plainWord, section, settingText, view, word } from "../parts/page.js";
import { Table } from "../parts/table.js";
import { NetworkViewer } from "../parts/viewer.js";
import { ahead, deviceText, differenceText, idOf, isSpeed, measureText, nameOf, sign, times, valueText } from "./words.js";

/** @typedef {import("./words.js").Measure} Measure */

const FACTS = ["space", "layers", "edges", "depth", "params", "flops", "mass"];
/** Where this browser keeps the device that was chosen last. */
const DEVICE = "archive-device";

/** @param {{ networks: any[], measures: Measure[] }} found @param {() => HTMLElement} more what adds further networks */
export function showPair(found, more) {
  const { networks, measures } = found;
  const [first, second] = networks.map(nameOf);
  document.title = `${first} against ${second} · Architecture Archive`;
  const alike = networks[0].space === networks[1].space;
  const said = el("div.verdicts");
  const why = el("ul.why");
  const differing = el("div");
  const distances = el("div", {}, el("p.quiet", {}, "Comparing …"));
  const showAnswer = () => fill(said, verdicts(found));
  fill(view,
    el("section.card", {}, el("h1", {}, first, el("span.quiet", {}, " against "), second), chooser(measures, showAnswer), said,
      el("h2", {}, "Why"), why, el("div.two.sides", {}, networks.map(side))),
    alike && section("The difference", differing),
    el("div.cards", {}, values(found), section("Properties", properties(networks))),
    alike && section("Distances", distances),
    more());
  showAnswer();
  fill(why, costs(found));
  if (!alike) {
    why.append(el("li", {}, `They are of the spaces ${networks[0].space} and ${networks[1].space}, between which there is no distance.`));
    return;
  }
  showDifference(differing, why, found).catch((error) => failed(differing, error));
  // The first comparison of a server compiles kernels.
  showDistances(distances, networks.map((each) => each.key)).catch((error) => failed(distances, error));
}

/** The measures among which the answer is chosen: one task, one device. @param {Measure[]} measures @param {() => void} changed */
function chooser(measures, changed) {
  const of = (/** @type {Measure[]} */ some) => some.map((each) => /** @type {[string, string]} */ ([idOf(each), isSpeed(each) ? deviceText(each) : measureText(each)]));
  const tasks = measures.filter((each) => each.task && !isSpeed(each));
  const devices = measures.filter(isSpeed);
  const choose = (/** @type {string} */ name) => (/** @type {string} */ value) => {
    carry({ [name]: value });
    if (name === "device") localStorage.setItem(DEVICE, value);
    changed();
  };
  return el("div.tools", {}, tasks.length > 1 && choice("task", of(tasks), idOf(/** @type {Measure} */ (chosen(tasks, "task"))), choose("task")),
    devices.length > 1 && choice("device", of(devices), idOf(/** @type {Measure} */ (chosen(devices, "device"))), choose("device")));
}

/** @param {Measure[]} some @param {"task" | "device"} name @returns {Measure | undefined} */
function chosen(some, name) {
  const wanted = address.get(name) ?? (name === "device" ? localStorage.getItem(DEVICE) : null);
  return some.find((each) => idOf(each) === wanted) ?? some[0];
}

/** Sentences on the value and on the speed, the conclusion first. @param {{ networks: any[], measures: Measure[] }} found */
function verdicts({ networks, measures }) {
  const names = networks.map(nameOf);
  const value = chosen(measures.filter((each) => each.task && !isSpeed(each)), "task");
  const speed = chosen(measures.filter(isSpeed), "device");
  const lines = [value && valueLine(value, names), speed && speedLine(speed, names)].filter(Boolean);
  return [el("p.verdict", {}, conclusion(names, value, speed)), ...lines.map((line) => el("p", {}, line))];
}

/** @param {string[]} names @param {Measure | undefined} value @param {Measure | undefined} speed */
function conclusion(names, value, speed) {
  const [best, fast] = [value ? ahead(value) : null, speed ? ahead(speed) : null];
  const [task, device] = [value?.task ?? "", speed ? speed.device : ""];
  if (!value && !speed) return "No task and no device has results of both.";
  if (best !== null && best === fast) return `${names[best]} is better: it has the better value on ${task}, and is faster on ${device}.`;
  if (best !== null && fast !== null) return `${names[best]} is better on ${task}, ${names[fast]} is faster on ${device}.`;
  if (best !== null) return `${names[best]} is better on ${task}${speed ? `; no difference is certain on ${device}` : ""}.`;
  if (fast !== null) return `${names[fast]} is faster on ${device}${value ? `; no difference is certain on ${task}` : ""}.`;
  return `No difference is certain${value ? ` on ${task}` : ""}${speed ? ` or ${device}` : ""}.`;
}

/** @param {Measure} measure @param {string[]} names */
function valueLine(measure, names) {
  const [first, second] = /** @type {any[]} */ (measure.values);
  const better = ahead(measure) ?? (sign(measure) * (second.mean - first.mean) > 0 ? 1 : 0);
  const both = [first, second];
  const noise = measure.mixed ? "; each by the best of its own recipes, which may matter more than the network"
    : first.error !== null || second.error !== null ? (measure.best.length > 1 ? "; a difference of this size may be noise" : "; the difference is larger than the noise of the trainings") : first.trainings + second.trainings === 2 ? "; measured once each, so that the noise is not known" : "";
  return [`${measureText(measure)}: `, names[better], " ", el("b", {}, valueText(both[better])), `, ${names[1 - better]} `, el("b", {}, valueText(both[1 - better])),
    measure.protocol ? ` (${measure.protocol})` : "", noise, "."];
}

/** @param {Measure} measure @param {string[]} names */
function speedLine(measure, names) {
  const [first, second] = /** @type {any[]} */ (measure.values);
  const fast = sign(measure) * (second.mean - first.mean) > 0 ? 1 : 0;
  const both = [first, second];
  const ratio = Math.max(first.mean, second.mean) / Math.min(first.mean, second.mean);
  return [`${measureText(measure)}: `, names[fast], " ", el("b", {}, valueText(both[fast])), `, ${names[1 - fast]} `, el("b", {}, valueText(both[1 - fast])),
    ratio > 1.005 && Number.isFinite(ratio) ? `: ${times(ratio)} as fast` : "", measure.protocol ? ` (${measure.protocol})` : "", "."];
}

/** Ratios of costs in words. @param {{ networks: any[], measures: Measure[] }} found */
function costs({ networks, measures }) {
  const names = networks.map(nameOf);
  const lines = measures.filter((each) => !each.task && !isSpeed(each)).map((measure) => {
    const [first, second] = measure.values;
    if (!first || !second || !(first.mean > 0) || !(second.mean > 0)) return null;
    const ratio = Math.max(first.mean, second.mean) / Math.min(first.mean, second.mean);
    const larger = second.mean > first.mean ? 1 : 0;
    if (ratio < 1.005) return null;
    return el("li", {}, `${names[larger]} has ${times(ratio)} the ${measureText(measure)}: ${number([first, second][larger].mean)} against ${number([first, second][1 - larger].mean)}`);
  });
  return lines.filter(Boolean);
}

/** @param {any} network */
function side(network) {
  const viewer = new NetworkViewer();
  viewer.show(network.key);
  return el("div.side", {}, el("h3", {}, el("a", { href: networkLink(network.key) }, nameOf(network)), " ", comparing("network", network.key, { text: nameOf(network) })), viewer.element);
}

/** Values on each task; speeds of all devices folded. @param {{ networks: any[], measures: Measure[] }} found */
function values({ networks, measures }) {
  const table = (/** @type {Measure[]} */ rows) => {
    const made = new Table([
      { name: "task", title: rows.every(isSpeed) ? "device" : "task", cell: (row) => [isSpeed(row) ? deviceText(row) : row.task, el("div.quiet.small-text", {}, word("quantities", row.metric), row.mixed ? ", protocols of their own" : `, ${row.protocol || "measured in training"}`)], key: (row) => row.device || row.task },
      ...networks.map((network, at) => ({ name: String(at), title: nameOf(network), numeric: true, cell: (/** @type {Measure} */ row) => valueText(row.values[at]), key: (/** @type {Measure} */ row) => row.values[at]?.mean })),
      { name: "difference", numeric: true, cell: differenceText, key: (row) => (row.values[0] && row.values[1] ? row.values[1].mean - row.values[0].mean : null) },
    ]);
    made.show(rows);
    return made.element;
  };
  const tasks = measures.filter((each) => each.task && !isSpeed(each));
  const devices = measures.filter(isSpeed);
  const card = section("Values on each task", tasks.length > 0 && table(tasks), tasks.some((each) => each.mixed) && el("p.quiet", {}, "Protocols of their own: the best result of each network."),
    devices.length > 0 && el("details", { open: !tasks.length }, el("summary", {}, `On ${devices.length === 1 ? "a device" : `devices: ${devices.length} speeds`}`), table(devices)));
  card.hidden = !tasks.length && !devices.length;
  return card;
}

/** @param {any[]} networks */
function properties(networks) {
  const table = new Table([{ name: "fact", title: "", cell: (row) => (FACTS.includes(row.fact) ? word("quantities", row.fact) : row.fact) },
    ...networks.map((network, at) => ({ name: String(at), title: nameOf(network), numeric: true }))]);
  const rows = FACTS.filter((name) => networks.some((each) => each[name] != null)).map((fact) => ({ fact, 0: number(networks[0][fact]), 1: number(networks[1][fact]) }));
  const names = [...new Set(networks.flatMap((each) => Object.keys(each.configuration)))];
  const value = (/** @type {any} */ network, /** @type {string} */ name) => (Object.hasOwn(network.configuration, name) ? settingText(network.configuration[name]) : "–");
  table.show([...rows, ...names.map((fact) => ({ fact, 0: value(networks[0], fact), 1: value(networks[1], fact) }))]);
  return table.element;
}

/** @param {Element} place @param {Element} why @param {{ networks: any[] }} found */
async function showDifference(place, why, { networks }) {
  const names = networks.map(nameOf);
  const viewer = new NetworkViewer();
  const parts = el("div", {}, el("p.quiet", {}, "Comparing …"));
  const sum = el("span.quiet");
  const kernel = () => (address.get("kernel") === "otmann" ? "otmann" : "edit");
  const layout = () => (address.get("drawn") === "beside" ? "beside" : "merged");
  const query = () => new URLSearchParams([...networks.map((each) => ["network", each.key]), ["kernel", kernel()]]);
  const draw = () => viewer.showPath(`/differences.svg?${query()}&view=${layout()}&theme=page`);
  const load = async () => {
    draw();
    const difference = await api(`/api/difference?${query()}`);
    fill(sum, `${difference.component}: ${number(difference.distance)}, the sum of what costs something`);
    fill(parts, partsTable(difference, names));
    return difference;
  };
  fill(place, el("div.tools", {}, pick("drawn", [["merged", "in one picture"], ["beside", "side by side"]], layout(), (value) => { carry({ drawn: value }); draw(); }),
    choice("by", [["edit", "edit script"], ["otmann", "OTMANN's transport"]], kernel(), (value) => { carry({ kernel: value }); load().catch((error) => failed(parts, error)); }), sum),
  el("div.two", {}, viewer.element, parts));
  const difference = await load();
  for (const line of reasons(difference, names, networks)) why.append(el("li", {}, line));
  if (!why.children.length) why.append(el("li", {}, "The networks are equal."));
}

/** What differs, in words. @param {any} difference @param {string[]} names @param {any[]} networks @returns {any[]} */
function reasons(difference, names, networks) {
  const lines = [];
  const settings = [...new Set(networks.flatMap((each) => Object.keys(each.configuration)))].filter((name) => settingText(networks[0].configuration[name]) !== settingText(networks[1].configuration[name]));
  if (settings.length) lines.push(settings.map((name) => `${name} ${settingText(networks[0].configuration[name] ?? "–")} → ${settingText(networks[1].configuration[name] ?? "–")}`).join(", "));
  lines.push(...(networks.every((each) => each.space === "torch") ? difference.changes : []));
  const counted = (/** @type {string} */ change) => difference.totals.filter((/** @type {any} */ each) => each.change === change && each.cost > 0)
    .map((/** @type {any} */ each) => `${each.parts} ${plainWord("parts", each.subject)}${each.parts === 1 ? "" : "s"}`).join(" and ");
  const only = [["removed", `only in ${names[0]}`], ["inserted", `only in ${names[1]}`], ["changed", "changed"]].map(([change, text]) => (counted(change) ? `${counted(change)} ${text}` : "")).filter(Boolean);
  if (only.length) lines.push(only.join(", "));
  return lines;
}

/** @param {any} difference @param {string[]} names */
function partsTable(difference, names) {
  const table = new Table([
    { name: "subject", title: "part", cell: (row) => word("parts", row.subject) },
    { name: "change" },
    { name: "first", title: names[0], cell: (row) => row.first || "–" },
    { name: "second", title: names[1], cell: (row) => row.second || "–" },
    { name: "cost", numeric: true, cell: (row) => number(row.cost) },
    { name: "reason", wide: true },
  ], { sort: "cost", descending: true, empty: "the networks are equal" });
  table.show(difference.parts.filter((/** @type {any} */ part) => part.cost > 0));
  return el("div.tall", {}, table.element);
}

/** @param {Element} place @param {string[]} keys */
async function showDistances(place, keys) {
  const pair = await api(`/api/comparison?${new URLSearchParams(keys.map((key) => ["network", key]))}`);
  const table = new Table([{ name: "kernel" }, { name: "component" }, { name: "distance", numeric: true, cell: (each) => number(each.distance) }],
    { empty: pair.one_space ? "no kernel is defined on both" : "networks of different spaces have no distance" });
  table.show(pair.distances);
  fill(place, table.element, Object.keys(pair.left_out).length > 0 && el("p.quiet", {}, `Not defined on these: ${Object.keys(pair.left_out).join(", ")}`));
}
