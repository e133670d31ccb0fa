// @ts-check
/** All networks of a space as a map: similar ones are close, and searches are paths over it. */

import { address, api, carry, choice, el, failed, fill, plainWord, section, view } from "../parts/page.js";
import { MOST, Places } from "../parts/places.js";

const places = new Places(560);
places.hint = "Choose a search below to see its path.";
const tools = el("div.tools");
const studyBoxes = el("div.checks");
const distance = () => address.get("distance") ?? "profile";

/** @param {any} choices */
async function load(choices) {
  const chosen = address.getAll("study").slice(0, MOST);
  const known = new Map(choices.studies.map((/** @type {any} */ each) => [each.study, each]));
  const space = known.get(chosen[0])?.space ?? address.get("space") ?? choices.spaces[0].space;
  places.colour = address.get("colour") ?? "study";
  fill(tools, choice("space", choices.spaces.map((/** @type {any} */ each) => [each.space, `${each.space} (${each.networks})`]), space, (value) => { location.search = `?space=${encodeURIComponent(value)}`; }),
    choice("colour", [["study", "study"], ["value", "value"]], places.colour, (value) => { carry({ colour: value }); places.show(value); }),
    choice("distance", choices.distances.map((/** @type {string} */ each) => [each, plainWord("distances", each)]), distance(), (value) => { carry({ distance: value === "profile" ? null : value, space }); load(choices); }));
  const boxes = choices.studies.filter((/** @type {any} */ each) => each.space === space).map((/** @type {any} */ each) => {
    const box = /** @type {HTMLInputElement} */ (el("input", { type: "checkbox", value: each.study, checked: chosen.includes(each.study), onchange: () => {
      const kept = address.getAll("study").filter((name) => name !== each.study);
      address.delete("study");
      for (const name of box.checked ? [...kept, each.study] : kept) address.append("study", name);
      carry({ space });
      load(choices);
    } }));
    return el("label", {}, box, ` ${each.study} `, el("span.quiet", {}, each.objective));
  });
  fill(studyBoxes, boxes);
  searches.hidden = !boxes.length;
  await places.load(space, distance(), chosen);
}

const searches = section("Searches on the map", studyBoxes);

async function start() {
  try {
    const choices = await api("/api/map/choices");
    if (!choices.spaces.length) {
      fill(view, section("Map", el("p.quiet", {}, "No network yet. A search brings some, or the published ones: ", el("code", {}, "archive import zoo timm"))));
      return;
    }
    fill(view, section("Map of networks", tools, places.legend, places.element, places.note), searches);
    await load(choices);
  } catch (error) {
    failed(view, error);
  }
}

start();
