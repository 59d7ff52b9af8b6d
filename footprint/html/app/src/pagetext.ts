// The pages of an object in words: how many are in each state, and what lies in one.

import type { Cell } from "./celllayout";
import { el, plainTable } from "./dom";
import { printable, shortened } from "./names";
import { CHANGES, formerPart } from "./pagechange";
import { type PageMap, placesWithin, PRIVATE, sectionPages, STATES, type States, UNKNOWN } from "./pagemap";
import { formatBytes, grouped } from "./units";

const MOST_NAMES = 12;
const MOST_LISTED = 500;

/** The number of pages of each part, by state: those that cost first. */
export function stateTable(map: PageMap, states: States): HTMLElement {
  const numbers = [...states.keys()];
  const shown = [...new Set(states === STATES ? [...PRIVATE, ...numbers.reverse()] : numbers)].filter((state) => map.counts[state]);
  return plainTable(["part", "pages", ...shown.map((state) => states[state][0])], map.parts.slice(0, MOST_LISTED).map((part) => {
    const counts = states.map(() => 0);
    part.states.forEach((state) => (counts[state] += 1));
    return [
      `${part.kind} ${part.permissions} ${hex(part.start_addr)}`, grouped(part.states.length),
      ...shown.map((state) => (counts[state] ? grouped(counts[state]) : "-"))];
  }), "Pages by state");
}

/** The state of a page, and the sections and variables in it. */
export function describedCell(map: PageMap, states: States, [place, page]: Cell, pageBytes: number): (string | HTMLElement)[] {
  const part = map.parts[place];
  // A page that is no longer private is described as it was.
  const former = states === CHANGES ? formerPart(part, page) : undefined;
  const start = (former ?? part).start_addr + page * pageBytes;
  const { sections, variables } = former?.map ?? map;
  const names = placesWithin(variables?.() ?? [], start, start + pageBytes);
  const sectionText = placesWithin(sections, start, start + pageBytes).slice(0, MOST_NAMES).map((one) => {
    const { all, own } = sectionPages(map, one, pageBytes);
    const hasShare = states === STATES && !map.counts[UNKNOWN] && all > 1;
    return printable(one.section) + (hasShare ? ` (${grouped(own)} of ${grouped(all)} pages private)` : "");
  }).join(", ");
  const missing = variables || part.kind === "text" ? "" : ": its variables are not saved";
  return [
    el("strong", {}, `${hex(start)} ${states[part.states[page]][0]}`),
    ` ${part.kind} ${part.permissions} ${sectionText}${missing}`,
    names.length ? `: ${names.slice(0, MOST_NAMES).map((one) => `${printable(shortened(one.name ?? "", 200))} (${formatBytes(one.size_bytes)})`).join("; ")}` : "",
    names.length > MOST_NAMES ? `; and ${grouped(names.length - MOST_NAMES)} more` : "",
  ];
}

export function hex(addr: number): string {
  return `0x${addr.toString(16)}`;
}

/** Make the list of the states in some maps and their meanings. */
export function stateLegend(maps: PageMap[], states: States): HTMLElement {
  const present = states.map((_, state) => state).filter((state) => maps.some((one) => one.counts[state]));
  return el("ul", { class: "legend" }, ...present.map((state) => {
    const [word, colour, meaning] = states[state];
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = colour;
    return el("li", {}, swatch, `${word}: ${meaning}`);
  }));
}
