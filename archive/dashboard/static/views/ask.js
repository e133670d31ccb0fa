// @ts-check
/** Questions: saved queries with forms, and Cypher that only reads; answers as a table and as a graph. */

import { address, api, carry, el, failed, fill, networkAnchor, number, section, studyAnchor, view } from "../parts/page.js";
import { Graph } from "../parts/graph.js";
import { Table } from "../parts/table.js";

const EXAMPLE = "MATCH way = (s:Study)-[:PROPOSED]->(p:Proposal)-[:OF]->(a:Architecture)\nRETURN way, p.mean AS predicted\nLIMIT 25";
const PAGE = 1000;
const SHOWN = 500;
const NAMES = ["study", "task", "protocol"];

const cypher = /** @type {HTMLTextAreaElement} */ (el("textarea", { spellcheck: "false", "aria-label": "Cypher", onkeydown: (/** @type {KeyboardEvent} */ event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); runCypher(); }
} }, address.get("cypher") ?? EXAMPLE));
const parameters = /** @type {HTMLInputElement} */ (el("input", { placeholder: '{"name": "value"}', "aria-label": "Parameters as JSON", value: address.get("parameters") ?? "", size: 40 }));
const answer = el("div", { "aria-live": "polite" });
const form = el("div");
/** @type {AbortController | null} */
let running = null;

const answerCard = section("Answer", answer);
answerCard.hidden = true;
const list = el("ul.questions");
const all = el("details", { open: true }, el("summary", {}, "All questions"), list);

/** @param {any[]} queries */
function build(queries) {
  const chosen = queries.find((each) => each.name === address.get("query"));
  const buttons = queries.map((each) => el("button.question", { type: "button", "aria-pressed": String(each === chosen), onclick: (/** @type {Event} */ event) => {
    for (const name of [...address.keys()]) address.delete(name);
    carry({ query: each.name });
    for (const button of buttons) button.setAttribute("aria-pressed", String(button === event.currentTarget));
    showForm(each);
  } }, el("b", {}, each.name), el("span.quiet", {}, firstSentence(each.summary))));
  fill(list, buttons.map((button) => el("li", {}, button)));
  fill(view,
    section("Questions", all, form),
    answerCard,
    section("A question of your own, in Cypher", cypher, el("div.tools", {}, el("button.primary", { type: "button", onclick: runCypher }, "Run"), parameters,
      el("span.quiet", {}, "Ctrl+Enter runs it; only reading queries are accepted"))));
  if (chosen) showForm(chosen);
  else if (address.get("cypher")) runCypher();
}

/** @param {string} text */
const firstSentence = (text) => text.match(/^.*?[.](?= |$)/s)?.[0] ?? text;

/** @param {any} query */
function showForm(query) {
  /** @type {Map<string, HTMLInputElement>} */
  const inputs = new Map();
  const fields = query.parameters.map((/** @type {any} */ each) => {
    const input = /** @type {HTMLInputElement} */ (el("input", { name: each.name, required: each.needed, value: address.get(each.name) ?? "", placeholder: each.needed ? "required" : JSON.stringify(each.default) }));
    inputs.set(each.name, input);
    return el("label", {}, each.name, input, el("small", {}, each.help));
  });
  const run = () => {
    /** @type {Record<string, any>} */
    const values = {};
    for (const [name, input] of inputs) {
      carry({ [name]: input.value || null });
      // The name of a study may be 7 or null.
      if (input.value) values[name] = NAMES.includes(name) ? input.value : parsed(input.value);
    }
    ask({ name: query.name, parameters: values });
  };
  answerCard.hidden = true;
  all.removeAttribute("open");
  const first = firstSentence(query.summary);
  const rest = query.summary.slice(first.length).trim();
  fill(form, el("h3", {}, query.name), el("p", {}, first), el("form", { onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); run(); } }, el("div.fields", {}, fields), el("button.primary", {}, "Run")),
    el("details", {}, el("summary", {}, "Details and Cypher"), rest && el("p", {}, rest), el("pre", {}, query.cypher)));
  if (query.parameters.every((/** @type {any} */ each) => !each.needed || inputs.get(each.name)?.value)) run();
}

/** A value as JSON, or as the text that it is. @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function runCypher() {
  for (const name of [...address.keys()]) address.delete(name);
  carry({ cypher: cypher.value, parameters: parameters.value || null });
  const values = parameters.value ? parsed(parameters.value) : {};
  ask({ cypher: cypher.value, parameters: values });
}

/** @param {any} question @param {number} [skip] */
async function ask(question, skip = 0) {
  running?.abort();
  answerCard.hidden = false;
  running = new AbortController();
  fill(answer, el("p.quiet", {}, "Asking …"));
  const begin = performance.now();
  try {
    const found = await api("/api/query", { ...question, limit: PAGE, skip }, running.signal);
    show(found, question, skip, (performance.now() - begin) / 1000);
  } catch (error) {
    failed(answer, error);
  }
}

/** @param {any} found @param {any} question @param {number} skip @param {number} took */
function show(found, question, skip, took) {
  const graph = new Graph(found.rows);
  const table = new Table(found.columns.map((/** @type {string} */ name, /** @type {number} */ at) => ({
    name: String(at), title: name, numeric: found.rows.length > 0 && found.rows.every((/** @type {any[]} */ row) => row[at] === null || typeof row[at] === "number"),
    cell: (/** @type {any[]} */ row) => cell(name, row[at]), key: (/** @type {any[]} */ row) => (typeof row[at] === "object" ? JSON.stringify(row[at]) : row[at]),
  })), { empty: found.why_empty ?? "no rows" });
  table.show(found.rows.slice(0, SHOWN));
  const count = `${found.rows.length}${found.truncated ? "+" : ""} rows${skip ? ` from ${skip}` : ""} in ${number(Number(took.toFixed(2)))} s`;
  const end = skip + found.rows.length;
  fill(answer, el("div.tools", {}, el("span.quiet", {}, count, found.rows.length > SHOWN ? `, the first ${SHOWN} are shown` : ""),
    found.truncated && el("button.small", { type: "button", onclick: () => ask(question, skip + PAGE) }, "next page"),
    found.rows.length > 0 && el("a", { href: csv(found), download: "answer.csv" }, "Save as CSV"),
    found.rows.length > 0 && (found.truncated || skip > 0) && el("span.quiet", {}, `of rows ${skip + 1} to ${end} only, of ${found.truncated ? `more than ${end}` : end}`)),
  graph.size ? graph.element : null, table.element);
  if (graph.size) graph.start();
}

/** @param {any} found */
function csv(found) {
  const quoted = (/** @type {any} */ value) => (value === null ? "" : `"${(typeof value === "object" ? JSON.stringify(value) : String(value)).replaceAll('"', '""')}"`);
  const lines = [found.columns, ...found.rows].map((row) => row.map(quoted).join(","));
  return URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
}

/** @param {string} name @param {any} value */
function cell(name, value) {
  if (typeof value === "string" && /^[0-9a-f]{32}$/.test(value)) return networkAnchor(value);
  if (typeof value === "string" && ["study", "s.name"].includes(name)) return studyAnchor(value);
  // An answer may be a time or an id: integers are whole, and the digits of the others are in the title.
  if (typeof value === "number") return el("span", { title: String(value) }, Number.isInteger(value) ? String(value) : number(value));
  if (Array.isArray(value) && value.every((each) => typeof each !== "object")) return value.join(", ") || "–";
  if (value !== null && typeof value === "object") return el("details", {}, el("summary", {}, title(value)), el("pre", {}, JSON.stringify(value, null, 1)));
  return value === null ? "–" : String(value);
}

/** A node, a relationship, a path or a map in a few words. @param {any} value @returns {string} */
function title(value) {
  if (Array.isArray(value)) return value.map(title).join(" ");
  if (value?.labels) {
    const { properties } = value;
    const name = properties.id ?? properties.name ?? properties.key?.slice(0, 10) ?? properties.index ?? "";
    return `(${value.labels[0] ?? ""} ${name})`;
  }
  if (value?.type && value.properties) return `[${value.type}]`;
  const text = JSON.stringify(value) ?? "";
  return text.length > 80 ? `${text.slice(0, 78)} …` : text;
}

api("/api/queries").then(({ queries }) => build(queries)).catch((error) => failed(view, error));
