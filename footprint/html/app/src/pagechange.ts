// How the pages of objects changed between two audits.

import { colour } from "./colours";
import { type PageMap, type Part, PRIVATE, type States, UNKNOWN } from "./pagemap";

/** The changes of a page between two audits. */
export const CHANGES: States = [
  ["not private", "", "neither before nor after"],
  ["private as before", colour("rest"), "only the process holds it, before and after"],
  ["private only after", colour("grew"), "it became private, or is new"],
  ["private only before", colour("shrank"), "it is no longer private, or is gone"],
  ["unknown", colour("unknown"), "page bits could not be read of both"],
];
const [NEITHER, BOTH, ONLY_AFTER, ONLY_BEFORE, UNKNOWN_CHANGE] = [0, 1, 2, 3, 4];

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
    omittedNames: (old?.omittedNames ?? 0) + (now?.omittedNames ?? 0), privateBytes: null,
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
