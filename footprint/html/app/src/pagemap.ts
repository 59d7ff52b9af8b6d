// The pages of objects one by one: their states, and the sections in them.

import { colour } from "./colours";
import { PAGE_STATES } from "./words";

/** The words, colours and meanings of states; the number of a state is its place. */
export type States = [word: string, colour: string, meaning: string][];

const COLOURS: Record<string, string> = {
  "not private": colour("rest"), shared: colour("shared"), private: colour("private"), relocated: colour("relro"),
  swapped: colour("swapped"), unknown: colour("unknown"),
};
/** The states of a page, in the order of their numbers. */
export const STATES: States = PAGE_STATES.map(([word, text]) => [word, COLOURS[word] ?? "", text]);
export const NUMBERS = new Map(STATES.map(([word], number) => [word, number]));
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
  /** The private bytes of the object in the ledger; null where they are not known. */
  privateBytes: number | null;
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
