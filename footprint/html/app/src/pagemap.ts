// The pages of objects one by one: their states, and the sections and variables in them.

import { colour } from "./colours";
import { type PageMapData, type Table, table, type VariableRow, type Variables } from "./data";
import type { PageMapRow, PagePartRow } from "./types";
import { PAGE_STATES } from "./words";

/** The words, colours and meanings of states; the number of a state is its place. */
export type States = [word: string, colour: string, meaning: string][];

const COLOURS: Record<string, string> = {
  "not private": colour("rest"), shared: colour("shared"), private: colour("private"), relocated: colour("relro"),
  swapped: colour("swapped"), unknown: colour("unknown"),
};
/** The states of a page, in the order of their numbers. */
export const STATES: States = PAGE_STATES.map(([word, text]) => [word, COLOURS[word] ?? "", text]);
const NUMBERS = new Map(STATES.map(([word], number) => [word, number]));
export const PRIVATE = ["private", "relocated", "swapped"].map((word) => NUMBERS.get(word)!);
export const UNKNOWN = NUMBERS.get("unknown")!;

/** Neighbouring pages that are mapped alike. */
export interface Part {
  start_addr: number;
  kind: string;
  permissions: string;
  /** The state of each page, by its number. */
  states: Uint8Array;
  /** For a change: the part before. */
  before?: { start_addr: number; map: PageMap };
}

/** A section or a variable. */
export interface Place {
  addr: number;
  size_bytes: number;
  section: string;
  name: string | null;
}

/** The pages of one object. */
export interface PageMap {
  owner: string;
  parts: Part[];
  /** Sorted by address. */
  sections: Place[];
  /** Returns them sorted by address; null where they are not known. There may be 100,000: few are ever looked at. */
  variables: (() => Place[]) | null;
  /** The number of pages in each state. */
  counts: number[];
  omittedPages: number;
  omittedNames: number;
}

/** Read the page maps of an audit. */
export function readMaps(data: PageMapData): PageMap[] {
  return table(data.maps).rows().map((row, number) => readMap(row, data.variables[number]));
}

function readMap(row: PageMapRow, named: Variables[string] | undefined): PageMap {
  const counts = STATES.map(() => 0);
  const parts = row.parts.map((part) => readPart(part, counts));
  // Parts with private pages come first: a large program has far more of the others.
  const isPrivate = (part: Part) => part.states.some((state) => PRIVATE.includes(state));
  parts.sort((a, b) => Number(isPrivate(b)) - Number(isPrivate(a)) || a.start_addr - b.start_addr);
  const { names, addrs, size_bytes } = row.sections;
  let variables: Place[] | undefined;
  return {
    owner: row.owner, parts, counts, omittedPages: row.omitted_pages,
    omittedNames: row.omitted_sections + (named?.omitted_count ?? 0),
    sections: byAddr(names.map((section, place) => ({ addr: addrs[place], size_bytes: size_bytes[place], section, name: null }))),
    variables: named ? () => (variables ??= byAddr(placed(table(named.variables)))) : null,
  };
}

function placed(rows: Table<VariableRow>): Place[] {
  const [gaps, sizes, sections, names] = rows.columns("gap_bytes", "size_bytes", "section", "name");
  let end = 0;
  return gaps.map((gap, row) => {
    const addr = end + gap;
    end = addr + sizes[row];
    return { addr, size_bytes: sizes[row], section: sections[row], name: names[row] };
  });
}

function readPart(row: PagePartRow, counts: number[]): Part {
  const states = new Uint8Array(row.page_counts.reduce((all, count) => all + count, 0));
  let at = 0;
  row.page_counts.forEach((count, place) => {
    const state = NUMBERS.get(row.states[place])!;
    states.fill(state, at, at + count);
    at += count;
    counts[state] += count;
  });
  return { start_addr: row.start_addr, kind: row.kind, permissions: row.permissions, states };
}

function byAddr(places: Place[]): Place[] {
  return places.sort((a, b) => a.addr - b.addr);
}

/** Count the private pages of a map. */
export function privateCount(map: PageMap): number {
  return PRIVATE.reduce((all, state) => all + map.counts[state], 0);
}

/** Return the places that overlap an address range. A place that overlaps it may begin far before it. */
export function placesWithin(places: Place[], start: number, end: number): Place[] {
  const found: Place[] = [];
  for (const one of places) {
    if (one.addr >= end) break;
    if (one.addr + one.size_bytes > start) found.push(one);
  }
  return found;
}

/** Count the pages of a section, and the private ones among them. */
export function sectionPages(map: PageMap, { addr, size_bytes }: Place, pageBytes: number): { all: number; own: number } {
  let [all, own] = [0, 0];
  for (const part of map.parts) {
    const first = Math.max(0, Math.floor((addr - part.start_addr) / pageBytes));
    const past = Math.min(part.states.length, Math.ceil((addr + size_bytes - part.start_addr) / pageBytes));
    for (let page = first; page < past; page += 1) if (PRIVATE.includes(part.states[page])) own += 1;
    all += Math.max(0, past - first);
  }
  return { all, own };
}
