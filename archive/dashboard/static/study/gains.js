// @ts-check
/** What each operation of a study's agents gained: children compared with their parents, and with the best before. */

import { api, el, failed, fill, number, section, studyPath, word } from "../parts/page.js";
import { svg } from "../parts/svg.js";
import { Table } from "../parts/table.js";
import { whenSeen } from "../parts/timing.js";
import { name } from "./state.js";

const [WIDTH, HEIGHT] = [180, 18];

const place = el("div", {}, el("p.quiet", {}, "Loading …"));
const table = new Table([
  { name: "operation", cell: (row) => word("operations", row.operation) },
  { name: "uses", numeric: true, wide: true },
  { name: "improved", title: "better", numeric: true, cell: (row) => `${Math.round((100 * row.improved) / row.uses)} %`, key: (row) => row.improved / row.uses },
  { name: "box", title: "gain", cell: box, key: (row) => row.quantiles[2] },
  { name: "median", title: "median", numeric: true, wide: true, cell: (row) => signedNumber(row.quantiles[2]), key: (row) => row.quantiles[2] },
  { name: "raised", title: "added to best", numeric: true, cell: (row) => number(row.raised) },
], { sort: "median", descending: true });

const card = section("Gains of operations", place);
card.hidden = true;
/** The card is absent without gains; its place is there, so that it can be seen. */
export const gainsPart = el("div", {}, card);
export const refreshGains = whenSeen(gainsPart, load, 10_000);

async function load() {
  try {
    const found = await api(studyPath(name, "gains"));
    card.hidden = Boolean(found.nothing);
    if (found.nothing) return;
    const ends = found.operations.flatMap((/** @type {any} */ each) => [each.quantiles[0], each.quantiles[4]]);
    // The boxes share the range of all gains. It is part of each row: a row that has not changed is not drawn again.
    const range = [Math.min(0, ...ends), Math.max(0, ...ends)];
    table.show(found.operations.map((/** @type {any} */ each) => ({ ...each, range })));
    fill(place, table.element, el("p.quiet", {}, `${found.steps} steps from a parent to a child. A gain is the child's ${found.objective} minus the parent's, with the sign that makes a larger one better; `,
      "the box has the quartiles, the line 5 % to 95 %. Added to best is how far the children raised the best value so far."));
  } catch (error) {
    return failed(place, error);
  }
}

/** @param {number} value */
const signedNumber = (value) => (value > 0 ? `+${number(value)}` : value < 0 ? `−${number(-value)}` : number(value));

/** @param {any} row */
function box(row) {
  const [least, most] = row.range;
  const x = (/** @type {number} */ gain) => 3 + ((gain - least) / (most - least || 1)) * (WIDTH - 6);
  const [low, first, middle, third, high] = row.quantiles.map(x);
  const text = `5 % ${number(row.quantiles[0])}, quartiles ${number(row.quantiles[1])}, ${number(row.quantiles[2])}, ${number(row.quantiles[3])}, 95 % ${number(row.quantiles[4])}`;
  return svg("svg.box", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": text },
    svg("title", {}, text),
    svg("line.zero", { x1: x(0), x2: x(0), y1: 0, y2: HEIGHT }),
    svg("line.span", { x1: low, x2: high, y1: HEIGHT / 2, y2: HEIGHT / 2 }),
    svg("rect.middle", { x: first, width: Math.max(1, third - first), y: 4, height: HEIGHT - 8 }),
    svg("line.median", { x1: middle, x2: middle, y1: 2, y2: HEIGHT - 2 }));
}
