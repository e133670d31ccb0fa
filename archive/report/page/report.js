"use strict";
// Sorting and filtering of the table, and the choice of the theme. Without this script the page is complete.
const table = document.getElementById("evaluations");
const body = table.tBodies[0];
const rows = [...body.rows];
const heads = [...table.tHead.rows[0].cells];

const keyOf = (row, at) => {
  const cell = row.cells[at];
  return cell.dataset.n === undefined ? cell.textContent : Number(cell.dataset.n);
};

// Empty cells are last in either order.
const compare = (one, two, down) => {
  if (one === "" || two === "") return (one === "") - (two === "");
  const order = typeof one === "number" && typeof two === "number" ? one - two : String(one).localeCompare(String(two));
  return down ? -order : order;
};

const sort = (at) => {
  const down = heads[at].getAttribute("aria-sort") !== "descending";
  const keyed = rows.map((row) => [keyOf(row, at), row]);
  keyed.sort((one, two) => compare(one[0], two[0], down));
  heads.forEach((head) => head.removeAttribute("aria-sort"));
  heads[at].setAttribute("aria-sort", down ? "descending" : "ascending");
  body.replaceChildren(...keyed.map(([, row]) => row));
};

heads.forEach((head, at) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = head.textContent;
  button.addEventListener("click", () => sort(at));
  head.replaceChildren(button);
});

const filter = document.getElementById("filter");
filter.querySelector("input").addEventListener("input", (event) => {
  const text = event.target.value.toLowerCase();
  rows.forEach((row) => { row.hidden = !row.textContent.toLowerCase().includes(text); });
});

const theme = document.getElementById("theme");
theme.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
[filter, theme, document.getElementById("hint")].forEach((each) => { each.hidden = false; });
