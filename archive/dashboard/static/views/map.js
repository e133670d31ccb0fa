// @ts-check
/** All networks of a space as a map: similar ones are close, groups have names, searches are paths that can be played. */

import { address, api, carry, choice, el, failed, fill, pick, plainWord, section, view } from "../parts/page.js";
import { MOST, Places } from "../parts/places.js";
import { Selection } from "../parts/selection.js";

const places = new Places(560, (chosen) => selection.show(chosen));
places.hint = "Choose a search below to see its path.";
const tools = el("div.tools");
const studyBoxes = el("div.checks");
const COLOURS = ["value", "study", "agent", "task", "family", "space"];
const distance = () => address.get("distance") ?? "profile";
/** The map of the networks of all spaces, as the server calls it. */
const ALL_SPACES = "all spaces";
let space = "";
const selection = new Selection(places, () => String(new URLSearchParams({ space, distance: distance() })));

/** What the colours may mean. @param {any} choices @returns {[string, string][]} */
function colours(choices) {
  const evaluated = choices.studies.length > 0;
  const names = ["value", ...evaluated ? ["study", "agent"] : [], "task", ...places.map?.head.families ? ["family"] : [], ...space === ALL_SPACES ? ["space"] : []];
  return names.map((name) => [name, name]);
}

/** @param {any} choices */
function showTools(choices) {
  const named = colours(choices);
  fill(tools, choice("space", choices.spaces.map((/** @type {any} */ each) => [each.space, `${each.space} (${each.networks})`]), space, (value) => { location.search = `?space=${encodeURIComponent(value)}`; }),
    choice("colour", named, places.colour, (value) => { carry({ colour: value, space }); load(choices); }),
    choice("distance", (space === ALL_SPACES ? ["profile"] : choices.distances).map((/** @type {string} */ each) => [each, plainWord("distances", each)]), distance(), (value) => { carry({ distance: value === "profile" ? null : value, space }); load(choices); }),
    pick("drag to", [["zoom", "zoom"], ["choose", "choose"]], places.plot.lassoing ? "choose" : "zoom", (value) => { places.plot.lassoing = value === "choose"; places.element.classList.toggle("lassoing", places.plot.lassoing); }));
}

/** @param {any} choices */
async function load(choices) {
  const chosen = address.getAll("study").slice(0, MOST);
  const known = new Map(choices.studies.map((/** @type {any} */ each) => [each.study, each]));
  space = address.get("space") === ALL_SPACES ? ALL_SPACES : known.get(chosen[0])?.space ?? address.get("space") ?? choices.spaces[0].space;
  places.colour = COLOURS.includes(address.get("colour") ?? "") ? /** @type {string} */ (address.get("colour")) : chosen.length ? "study" : "value";
  showTools(choices);
  const boxes = choices.studies.filter((/** @type {any} */ each) => space === ALL_SPACES || each.space === space).map((/** @type {any} */ each) => {
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
  selection.show([]);
  await places.load(space, distance(), chosen);
  if (!address.get("colour") && !chosen.length && boxes.length && places.map && !places.map.head.objective) {
    // Without a published value and a chosen search, the values would all be grey.
    places.colour = "study";
    await places.load(space, distance(), chosen);
  }
  // The map knows whether its networks have families.
  showTools(choices);
}

const searches = section("Searches on the map", studyBoxes);

async function start() {
  try {
    const choices = await api("/api/map/choices");
    if (!choices.spaces.length) {
      fill(view, section("Map", el("p.quiet", {}, "No network yet. A search brings some, or the published ones: ", el("code", {}, "archive import zoo timm"))));
      return;
    }
    fill(view, section("Map of networks", tools, places.legend, places.element, places.player.element, places.groups, places.note), selection.element, searches);
    await load(choices);
  } catch (error) {
    failed(view, error);
  }
}

start();
