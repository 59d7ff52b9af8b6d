// Reads the page maps of an audit: the states of pages, and the sections and variables in them.

import { NUMBERS, type PageMap, type Part, type Place, PRIVATE, STATES } from "./pagemap";
import { type Rows, type Table, table } from "./table";
import type { PageMapRow, PagePartRow } from "./types";

/** A variable in the pages of an object. */
export interface VariableRow {
  /** How far behind the end of the one before it that it begins. */
  gap_bytes: number;
  size_bytes: number;
  section: string;
  name: string | null;
}

/** The private bytes of each object with a page map, and its variables, by the number of the map; a saved audit has none of these. */
export type MapDetails = Record<string, { private_bytes: number; variables: Rows<VariableRow> | null; omitted_count: number }>;

/** The page maps of an audit, with what is known beside them. */
export interface PageMapData {
  maps: Rows<PageMapRow> | undefined;
  details: MapDetails;
}

/** Read the page maps of an audit. */
export function readMaps(data: PageMapData): PageMap[] {
  return table(data.maps).rows().map((row, number) => readMap(row, data.details[number]));
}

function readMap(row: PageMapRow, known: MapDetails[string] | undefined): PageMap {
  const counts = STATES.map(() => 0);
  const parts = row.parts.map((part) => readPart(part, counts));
  // Parts with private pages come first: a large program has far more of the others.
  const isPrivate = (part: Part) => part.states.some((state) => PRIVATE.includes(state));
  parts.sort((a, b) => Number(isPrivate(b)) - Number(isPrivate(a)) || a.start_addr - b.start_addr);
  const { names, addrs, size_bytes } = row.sections;
  let variables: Place[] | undefined;
  return {
    owner: row.owner, parts, counts, omittedPages: row.omitted_pages,
    omittedNames: row.omitted_sections + (known?.omitted_count ?? 0), privateBytes: known?.private_bytes ?? null,
    sections: byAddr(names.map((section, place) => ({ addr: addrs[place], size_bytes: size_bytes[place], section, name: null }))),
    variables: known?.variables ? () => (variables ??= byAddr(placed(table(known.variables!)))) : null,
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
