// The pages of objects one by one: their states, the sections and variables in them, and how they changed.

import { colour } from "./colours";
import { table, type PageMapData, type VariableRow, type Variables } from "./data";
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
const PRIVATE = ["private", "relocated", "swapped"].map((word) => NUMBERS.get(word)!);
export const UNKNOWN = NUMBERS.get("unknown")!;

/** The changes of a page between two audits. */
export const CHANGES: States = [
  ["not private", "", "neither before nor after"],
  ["private as before", colour("rest"), "only the process holds it, before and after"],
  ["private only after", colour("grew"), "it became private, or is new"],
  ["private only before", colour("shrank"), "it is no longer private, or is gone"],
  ["unknown", colour("unknown"), "page bits could not be read of both"],
];
const [NEITHER, BOTH, ONLY_AFTER, ONLY_BEFORE, UNKNOWN_CHANGE] = [0, 1, 2, 3, 4];

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
export type Place = VariableRow;

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
    variables: named ? () => (variables ??= byAddr(table(named.variables).rows())) : null,
  };
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

/** Count the pages that became private, and those that are no longer private. */
export function changeCounts(map: PageMap): { more: number; less: number } {
  return { more: map.counts[ONLY_AFTER], less: map.counts[ONLY_BEFORE] };
}

/** Return the part before, for a page that is no longer private. */
export function formerPart(part: Part, page: number): { start_addr: number; map: PageMap } | undefined {
  return part.states[page] === ONLY_BEFORE ? part.before : undefined;
}

/** Compare the page maps of two audits; only maps with a change are in the result, the largest change first. */
export function changedMaps(old: PageMap[], now: PageMap[], renamed: Map<string, string>): PageMap[] {
  const byOwner = new Map<string, [old: PageMap | null, now: PageMap | null]>();
  for (const one of old) byOwner.set(renamed.get(one.owner) ?? one.owner, [one, null]);
  for (const one of now) byOwner.set(one.owner, [byOwner.get(one.owner)?.[0] ?? null, one]);
  const changeCount = (map: PageMap) => map.counts[ONLY_AFTER] + map.counts[ONLY_BEFORE];
  return [...byOwner].map(([owner, [before, after]]) => changedMap(owner, before, after))
    .filter((one) => changeCount(one) > 0).sort((one, other) => changeCount(other) - changeCount(one));
}

// Parts of the same kind are compared in their order, and their pages from the first one on.
function changedMap(owner: string, old: PageMap | null, now: PageMap | null): PageMap {
  const [before, after] = [numbered(old), numbered(now)];
  const counts = CHANGES.map(() => 0);
  const parts = [...new Set([...after.keys(), ...before.keys()])].map((key) => {
    const [one, other] = [before.get(key), after.get(key)];
    const states = new Uint8Array(Math.max(one?.states.length ?? 0, other?.states.length ?? 0));
    states.forEach((_, page) => {
      states[page] = changeOf(one?.states[page] ?? 0, other?.states[page] ?? 0);
      counts[states[page]] += 1;
    });
    const { start_addr, kind, permissions } = (other ?? one)!;
    return { start_addr, kind, permissions, states, before: one && old ? { start_addr: one.start_addr, map: old } : undefined };
  });
  const isChanged = (part: Part) => part.states.some((state) => state === ONLY_AFTER || state === ONLY_BEFORE);
  parts.sort((a, b) => Number(isChanged(b)) - Number(isChanged(a)));
  return {
    owner, parts, counts, sections: now?.sections ?? [], variables: now ? now.variables : () => [],
    omittedPages: (old?.omittedPages ?? 0) + (now?.omittedPages ?? 0),
    omittedNames: (old?.omittedNames ?? 0) + (now?.omittedNames ?? 0),
  };
}

// The parts of a map by kind, permissions, and their number among the parts that have both in common.
function numbered(map: PageMap | null): Map<string, Part> {
  const found = new Map<string, Part>();
  const numbers = new Map<string, number>();
  for (const part of [...(map?.parts ?? [])].sort((a, b) => a.start_addr - b.start_addr)) {
    const key = `${part.kind} ${part.permissions}`;
    const number = numbers.get(key) ?? 0;
    numbers.set(key, number + 1);
    found.set(`${key} ${number}`, part);
  }
  return found;
}

function changeOf(was: number, is: number): number {
  if (was === UNKNOWN || is === UNKNOWN) return UNKNOWN_CHANGE;
  const [wasPrivate, isPrivate] = [PRIVATE.includes(was), PRIVATE.includes(is)];
  return wasPrivate && isPrivate ? BOTH : isPrivate ? ONLY_AFTER : wasPrivate ? ONLY_BEFORE : NEITHER;
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
