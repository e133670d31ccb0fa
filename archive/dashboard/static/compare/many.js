// @ts-check
/** Many networks as a table of small pictures: values per task, parameters, costs; two of them lead to their difference. */

import { address, carry, choice, drawing, el, fill, networkAnchor, section, settings, view } from "../parts/page.js";
import { compareLink, remove } from "../parts/basket.js";
import { Table } from "../parts/table.js";
import { deviceText, idOf, isSpeed, measureText, nameOf, valueText } from "./words.js";

/** @typedef {import("./words.js").Measure} Measure */

/** @param {{ networks: any[], measures: Measure[] }} found @param {() => HTMLElement} more what adds further networks */
export function showMany(found, more) {
  const { networks, measures } = found;
  document.title = `${networks.length} networks · Architecture Archive`;
  const place = el("div.many");
  const devices = measures.filter(isSpeed);
  const beside = el("a.button.primary", { "aria-disabled": "true" }, "Side by side");
  /** @type {string[]} keys of the two that are chosen, the last ones */
  let two = [];
  const choose = (/** @type {string} */ key, /** @type {boolean} */ on) => {
    two = [...two.filter((each) => each !== key), ...(on ? [key] : [])].slice(-2);
    for (const box of place.querySelectorAll("input[type=checkbox]")) /** @type {HTMLInputElement} */ (box).checked = two.includes(/** @type {HTMLInputElement} */ (box).value);
    showLink();
  };
  const showLink = () => {
    const ready = two.length === 2;
    beside.setAttribute("aria-disabled", String(!ready));
    if (ready) beside.setAttribute("href", compareLink(two.map((key) => ({ kind: "network", key }))));
    else beside.removeAttribute("href");
    beside.textContent = ready ? "Side by side" : `Side by side: choose ${two.length ? "one more" : "two"}`;
  };
  const show = () => {
    two = [];
    fill(place, table(networks, measures, address.get("device") ?? "", choose).element);
    showLink();
  };
  const chosen = devices.find((each) => idOf(each) === address.get("device")) ?? devices[0];
  if (chosen) address.set("device", idOf(chosen));
  const tools = el("div.tools", {}, devices.length > 1 && choice("device", devices.map((each) => /** @type {[string, string]} */ ([idOf(each), deviceText(each)])), idOf(chosen), (value) => { carry({ device: value }); show(); }),
    networks.length > 1 && beside);
  fill(view, section(networks.length === 1 ? "One network: add another to compare it with" : `${networks.length} networks`, summary(networks, measures), tools, place), more());
  show();
}

/** The best of each task, in a sentence. @param {any[]} networks @param {Measure[]} measures */
function summary(networks, measures) {
  /** @type {Map<string, Measure[]>} */
  const led = new Map();
  for (const measure of measures) {
    if (!measure.task || isSpeed(measure) || !measure.best.length) continue;
    const names = measure.best.map((at) => nameOf(networks[at])).join(" and ");
    led.set(names, [...led.get(names) ?? [], measure]);
  }
  return el("div.verdicts", {}, [...led].map(([names, some], at) => el(at ? "p" : "p.verdict", {}, names, some[0].best.length > 1 ? " are best on " : " is best on ", some.map((each) => each.task).join(", "),
    some[0].best.length > 1 ? "; between them no difference is certain" : "", ".")));
}

/** @param {any[]} networks @param {Measure[]} measures @param {string} device @param {(key: string, on: boolean) => void} choose */
function table(networks, measures, device, choose) {
  const shown = measures.filter((each) => !isSpeed(each) || idOf(each) === device);
  const made = new Table([
    { name: "picture", title: "", unsorted: true, cell: (row) => el("a", { href: `/network?key=${row.key}`, tabindex: -1, "aria-label": nameOf(row) }, small(row)) },
    { name: "name", title: "network", cell: (row) => [networkAnchor(row.key, row.model), row.space ? el("div.quiet", {}, row.space) : "",
      networks.length > 2 ? el("label.choice", {}, el("input", { type: "checkbox", value: row.key, onchange: (/** @type {Event} */ event) => choose(row.key, /** @type {HTMLInputElement} */ (event.target).checked) }), " side by side") : "",
      el("button.small", { type: "button", onclick: () => leave(networks, row.key), "aria-label": `take out ${nameOf(row)}` }, "take out")].flat() },
    ...shown.map((measure, at) => ({ name: `measure ${at}`, title: measureText(measure), numeric: true,
      cell: (/** @type {any} */ row) => value(measure, networks.indexOf(row)), key: (/** @type {any} */ row) => measure.values[networks.indexOf(row)]?.mean })),
    { name: "layers", numeric: true },
    { name: "depth", numeric: true, wide: true },
    ...(networks.some((each) => settings(each.configuration)) ? [{ name: "configuration", unsorted: true, cell: (/** @type {any} */ row) => settings(row.configuration) || "–" }] : []),
  ], { sort: shown.length ? "measure 0" : "name", descending: shown[0]?.direction !== "minimise" });
  made.show(networks);
  return made;
}

/** Of a deep network, the first layers are legible. @param {HTMLElement} place of an image */
function whole(place) {
  const image = /** @type {HTMLImageElement} */ (place.querySelector("img"));
  image.onload = () => image.classList.toggle("deep", image.naturalHeight > 2 * image.naturalWidth);
  return place;
}

/** @param {any} network */
function small(network) {
  const picture = drawing(`/networks/${encodeURIComponent(network.key)}.svg?width=480&height=320&`, `Network ${nameOf(network)}`);
  picture.className = "small-picture";
  return whole(picture);
}

/** @param {Measure} measure @param {number} at */
function value(measure, at) {
  const text = valueText(measure.values[at]);
  if (!measure.best.includes(at)) return el("span", { title: measure.values[at]?.protocol }, text);
  return el("b.best", { title: measure.values[at]?.protocol }, el("i.star", { "aria-label": "best" }, "★ "), text);
}

/** @param {any[]} networks @param {string} key */
function leave(networks, key) {
  remove({ kind: "network", key });
  const rest = networks.filter((each) => each.key !== key);
  location.href = rest.length ? compareLink(rest.map((each) => ({ kind: "network", key: each.key }))) : "/compare?new=yes";
}
