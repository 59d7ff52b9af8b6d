// The pages of an object one by one: a cell a page, with what is known of it and what lies in it.

import { Table, table } from "./data";
import { el, fill, plainTable } from "./dom";
import { printable, shortened, shortOwners } from "./names";
import { formatBytes, grouped } from "./units";

type States = [word: string, colour: string, meaning: string][];

/** The states of footprint/attribution/page_maps.py, in their order. */
const STATES: States = [
  ["untouched", "", "not in memory"],
  ["not private", "#dddddd", "whether it is in memory was not looked at"],
  ["shared", "#77aadd", "in memory, and perhaps of others too"],
  ["private", "#ee8866", "only this process holds it"],
  ["relocated", "#aaaa00", "private, and written by relocations at each start"],
  ["swapped", "#c3a5d8", "private, on a swap device"],
  ["unknown", "#9aa5b1", "page bits could not be read"],
];
const NUMBERS = new Map(STATES.map(([word], number) => [word, number]));
const PRIVATE = [3, 4, 5];
const UNKNOWN = 6;
/** What became of a page between two audits. */
const CHANGES: States = [
  ["not private", "", "neither before nor after"],
  ["private as before", "#dddddd", "only the process holds it, before and after"],
  ["private only after", "#e69f00", "it became private, or is new"],
  ["private only before", "#56b4e9", "it is private no more, or gone"],
  ["unknown", "#9aa5b1", "page bits could not be read of both"],
];
const [NEITHER, BOTH, ONLY_AFTER, ONLY_BEFORE, UNTOLD] = [0, 1, 2, 3, 4];
const HEAD_PX = 20;
const MOST_TALL = 16000;
const MOST_NAMES = 12;
const MOST_LISTED = 500;

interface Part {
  start_addr: number;
  kind: string;
  permissions: string;
  states: Uint8Array;
  /** Where it was before, of a change. */
  before?: { start_addr: number; map: PageMap };
  /** Where its first cell is drawn, from above. */
  top: number;
}

interface Place {
  addr: number;
  size: number;
  section: string;
  name: string | null;
}

interface PageMap {
  owner: string;
  parts: Part[];
  sections: Place[];
  /** By their addresses; null where they are not told. */
  variables: Place[] | null;
  counts: number[];
  omittedPages: number;
  omittedNames: number;
}

/** What a page has of the pages of an audit: what the audit has, and by the number of each map what lies in it. */
export interface PageMaps {
  maps: unknown;
  variables?: Record<string, any>;
}

function read(told: PageMaps): PageMap[] {
  return table(told.maps).rows().map((one, number) => readOne(one, told.variables?.[number]));
}

function readOne(one: any, named: any): PageMap {
  const counts = STATES.map(() => 0);
  const parts: Part[] = one.parts.map((part: any) => {
    const states = new Uint8Array(part.page_counts.reduce((all: number, count: number) => all + count, 0));
    let at = 0;
    part.page_counts.forEach((count: number, place: number) => {
      const state = NUMBERS.get(part.states[place])!;
      states.fill(state, at, at + count);
      at += count;
      counts[state] += count;
    });
    return { start_addr: part.start_addr, kind: part.kind, permissions: part.permissions, states, top: 0 };
  });
  // What is private stands above: of a large program all else is far more.
  const isPrivate = (part: Part) => part.states.some((state) => PRIVATE.includes(state));
  parts.sort((a, b) => Number(isPrivate(b)) - Number(isPrivate(a)) || a.start_addr - b.start_addr);
  const { names, addrs, size_bytes } = one.sections;
  return {
    owner: one.owner, parts, counts, omittedPages: one.omitted_pages,
    omittedNames: one.omitted_sections + (named?.omitted_count ?? 0),
    sections: places(addrs, size_bytes, names, names.map(() => null)),
    variables: named ? variablesOf(table(named.variables)) : null,
  };
}

function variablesOf(rows: Table): Place[] {
  return places(rows.column("addr"), rows.column("size_bytes"), rows.column("section"), rows.column("name"));
}

function places(addr: number[], size: number[], section: string[], name: (string | null)[]): Place[] {
  return addr.map((_, row) => ({ addr: addr[row], size: size[row], section: section[row], name: name[row] }))
    .sort((a, b) => a.addr - b.addr);
}

function privateCount(one: PageMap): number {
  return PRIVATE.reduce((all, state) => all + one.counts[state], 0);
}

/**
 * Make the section of page maps; null where there is none.
 *
 * @param heldBy What the ledger says that each owner has.
 */
export function pageMapSection(told: PageMaps, pageBytes: number, heldBy: Map<string, number>): HTMLElement | null {
  const maps = read(told).sort((one, other) => privateCount(other) - privateCount(one));
  return cellSection(maps, STATES, pageBytes, "Page by page", (one) => `${formatBytes(privateCount(one) * pageBytes)} private`, (one) => {
    const drawn = privateCount(one) * pageBytes;
    const held = heldBy.get(one.owner) ?? drawn;
    if (held <= drawn || one.counts[UNKNOWN] || one.omittedPages) return null;
    return `The table above has ${formatBytes(held)} of it: which of its other pages the process writes is not known one by one.`;
  });
}

/** Make the section of how the pages of objects changed; null where they are not known of both. */
export function pageChangeSection(
  old: PageMaps, now: PageMaps, pageBytes: number, renamed: Map<string, string>,
): HTMLElement | null {
  const [before, after] = [read(old), read(now)];
  if (!before.length || !after.length) return null;
  const byOwner = new Map<string, [PageMap | null, PageMap | null]>();
  for (const one of before) byOwner.set(renamed.get(one.owner) ?? one.owner, [one, null]);
  for (const one of after) byOwner.set(one.owner, [byOwner.get(one.owner)?.[0] ?? null, one]);
  const maps = [...byOwner].map(([owner, [one, other]]) => changed(owner, one, other))
    .filter((one) => one.counts[ONLY_AFTER] || one.counts[ONLY_BEFORE])
    .sort((one, other) => moved(other) - moved(one));
  if (!maps.length) {
    return el("section", { class: "section", id: "pages" }, el("h2", {}, "Pages that changed"), el("p", { class: "empty" }, "Every object has the private pages that it had."));
  }
  return cellSection(maps, CHANGES, pageBytes, "Pages that changed",
    (one) => `pages +${grouped(one.counts[ONLY_AFTER])} -${grouped(one.counts[ONLY_BEFORE])}`,
    () => "Parts of one kind go together in their order, and their pages from the beginning of each.");
}

function moved(one: PageMap): number {
  return one.counts[ONLY_AFTER] + one.counts[ONLY_BEFORE];
}

// The parts of an object go together that are alike, in their order; their pages from the beginning of each.
function changed(owner: string, old: PageMap | null, now: PageMap | null): PageMap {
  const keyed = (map: PageMap | null) => {
    const found = new Map<string, Part>();
    const made = new Map<string, number>();
    for (const part of [...(map?.parts ?? [])].sort((a, b) => a.start_addr - b.start_addr)) {
      const key = `${part.kind} ${part.permissions}`;
      const place = made.get(key) ?? 0;
      made.set(key, place + 1);
      found.set(`${key} ${place}`, part);
    }
    return found;
  };
  const [before, after] = [keyed(old), keyed(now)];
  const counts = CHANGES.map(() => 0);
  const parts = [...new Set([...after.keys(), ...before.keys()])].map((key) => {
    const [one, other] = [before.get(key), after.get(key)];
    const states = new Uint8Array(Math.max(one?.states.length ?? 0, other?.states.length ?? 0));
    states.forEach((_, page) => {
      const [was, is] = [one?.states[page] ?? 0, other?.states[page] ?? 0];
      const [wasPrivate, isPrivate] = [PRIVATE.includes(was), PRIVATE.includes(is)];
      const state = was === UNKNOWN || is === UNKNOWN ? UNTOLD : wasPrivate && isPrivate ? BOTH : isPrivate ? ONLY_AFTER : wasPrivate ? ONLY_BEFORE : NEITHER;
      states[page] = state;
      counts[state] += 1;
    });
    const { start_addr, kind, permissions } = (other ?? one)!;
    return { start_addr, kind, permissions, states, top: 0, before: one && { start_addr: one.start_addr, map: old! } };
  });
  const hasMoved = (part: Part) => part.states.some((state) => state === ONLY_AFTER || state === ONLY_BEFORE);
  parts.sort((a, b) => Number(hasMoved(b)) - Number(hasMoved(a)));
  return {
    owner, parts, counts, sections: now?.sections ?? [], variables: now ? now.variables : [],
    omittedPages: (old?.omittedPages ?? 0) + (now?.omittedPages ?? 0),
    omittedNames: (old?.omittedNames ?? 0) + (now?.omittedNames ?? 0),
  };
}

function cellSection(
  maps: PageMap[], states: States, pageBytes: number, title: string,
  figureOf: (one: PageMap) => string, remarkOn: (one: PageMap) => string | null,
): HTMLElement | null {
  if (!maps.length) return null;
  const short = shortOwners(maps.map((one) => one.owner));
  const status = el("p", { class: "status", id: "cell", role: "status" });
  const canvas = el("canvas", { class: "cells", tabindex: 0, role: "application", "aria-roledescription": "page map" });
  const box = el("div", { class: "cell-box" }, canvas);
  const figures = el("div");
  const present = new Set<number>();
  maps.forEach((one) => one.counts.forEach((count, state) => count && present.add(state)));
  const legend = el("ul", { class: "legend" }, ...[...present].sort().map((state) => {
    const [word, colour, meaning] = states[state];
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = colour;
    return el("li", {}, swatch, `${word}: ${meaning}`);
  }));
  let map = maps[0];
  const base = document.createElement("canvas");
  let ratio = 1;
  let cell = 10;
  let columns = 1;
  let width = 0;
  let chosen: [part: number, page: number] = [0, 0];

  const lay = () => {
    width = box.clientWidth - 2;
    if (width < 40) return;
    const count = map.parts.reduce((all, part) => all + part.states.length, 0);
    cell = count <= 4000 ? 12 : count <= 20000 ? 8 : count <= 100000 ? 5 : 3;
    columns = Math.max(1, Math.floor(width / cell));
    let top = 0;
    for (const part of map.parts) {
      part.top = top + HEAD_PX;
      top = part.top + Math.ceil(part.states.length / columns) * cell + 6;
    }
    // Beyond some height browsers have no canvas.
    ratio = top * (devicePixelRatio || 1) > MOST_TALL ? 1 : devicePixelRatio || 1;
    for (const one of [canvas, base]) {
      one.width = Math.round(width * ratio);
      one.height = Math.round(Math.max(top, 1) * ratio);
    }
    canvas.style.width = `${width}px`;
    canvas.style.height = `${top}px`;
    draw();
  };
  const draw = () => {
    const context = base.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, canvas.height);
    const style = getComputedStyle(canvas);
    const line = style.getPropertyValue("--line").trim();
    const gap = cell > 4 ? 1 : 0;
    context.font = `12px ${style.fontFamily}`;
    for (const part of map.parts) {
      context.fillStyle = style.color;
      context.fillText(`${part.kind} ${part.permissions} at ${hex(part.start_addr)}, ${grouped(part.states.length)} ${part.states.length === 1 ? "page" : "pages"}`, 0, part.top - 6);
      part.states.forEach((state, page) => {
        const x = (page % columns) * cell;
        const y = part.top + Math.floor(page / columns) * cell;
        if (state) {
          context.fillStyle = states[state][1];
          context.fillRect(x, y, cell - gap, cell - gap);
        } else if (cell > 4) {
          context.strokeStyle = line;
          context.strokeRect(x + 0.5, y + 0.5, cell - 2, cell - 2);
        }
      });
    }
    paint();
  };
  // The cells as they were drawn, with the one that is chosen.
  const paint = () => {
    const context = canvas.getContext("2d")!;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    if (!base.width) return;
    context.drawImage(base, 0, 0);
    context.scale(ratio, ratio);
    const part = map.parts[chosen[0]];
    if (part && chosen[1] < part.states.length) {
      context.strokeStyle = getComputedStyle(canvas).color;
      context.lineWidth = 2;
      context.strokeRect((chosen[1] % columns) * cell - 1, part.top + Math.floor(chosen[1] / columns) * cell - 1, cell + 1, cell + 1);
    }
  };
  const at = (event: MouseEvent): [number, number] | null => {
    for (const [place, part] of map.parts.entries()) {
      const row = Math.floor((event.offsetY - part.top) / cell);
      const column = Math.floor(event.offsetX / cell);
      const page = row * columns + column;
      if (row >= 0 && column < columns && page < part.states.length) return [place, page];
    }
    return null;
  };
  const tell = ([place, page]: [number, number]) => {
    const part = map.parts[place];
    if (!part?.states.length) return;
    // What is private no more is told as it was.
    const was = states === CHANGES && part.states[page] === ONLY_BEFORE ? part.before : undefined;
    const addr = (was ?? part).start_addr + page * pageBytes;
    const lying = was?.map ?? map;
    const sections = within(lying.sections, addr, addr + pageBytes);
    const names = within(lying.variables ?? [], addr, addr + pageBytes);
    const untold = lying.variables || part.kind === "text" ? "" : ": its variables are not saved";
    fill(status, el("strong", {}, `${hex(addr)} ${states[part.states[page]][0]}`),
      ` ${part.kind} ${part.permissions} ${sections.slice(0, MOST_NAMES).map((one) => printable(one.section) + share(one)).join(", ")}${untold}`,
      names.length ? `: ${names.slice(0, MOST_NAMES).map((one) => `${printable(shortened(one.name!, 200))} (${formatBytes(one.size)})`).join("; ")}` : "",
      names.length > MOST_NAMES ? `; and ${grouped(names.length - MOST_NAMES)} more` : "");
  };
  // Of a section that has several pages, how many of them are private.
  const share = ({ addr, size }: Place): string => {
    if (states !== STATES || map.counts[UNKNOWN]) return "";
    let [count, own] = [0, 0];
    for (const part of map.parts) {
      const first = Math.max(0, Math.floor((addr - part.start_addr) / pageBytes));
      const past = Math.min(part.states.length, Math.ceil((addr + size - part.start_addr) / pageBytes));
      for (let page = first; page < past; page += 1) if (PRIVATE.includes(part.states[page])) own += 1;
      count += Math.max(0, past - first);
    }
    return count > 1 ? ` (${grouped(own)} of ${grouped(count)} pages private)` : "";
  };
  const choose = (found: [number, number]) => {
    chosen = found;
    paint();
    tell(found);
  };
  const show = (place: number) => {
    map = maps[place];
    chosen = [0, 0];
    canvas.setAttribute("aria-label", `Pages of ${printable(short(map.owner))}: arrow keys walk, the line above tells`);
    lay();
    fill(status, "Point at a cell, or walk with the arrow keys, to read what lies in that page.");
    const shown = states.map((_, state) => state).filter((state) => map.counts[state]);
    fill(figures,
      plainTable(["part", "pages", ...shown.map((state) => states[state][0])],
        map.parts.slice(0, MOST_LISTED).map((part) => {
          const counts = states.map(() => 0);
          part.states.forEach((state) => (counts[state] += 1));
          return [`${part.kind} ${part.permissions} ${hex(part.start_addr)}`, grouped(part.states.length), ...shown.map((state) => counts[state] ? grouped(counts[state]) : "-")];
        }), "Pages by state"),
      remarkOn(map) ? el("p", { class: "remark" }, remarkOn(map)) : null,
      map.variables ? null : el("p", { class: "remark" }, "A saved audit tells the sections of a page, and not its variables: the page of the process or program itself tells them."),
      map.omittedNames ? el("p", {}, `${grouped(map.omittedNames)} more names are too many to be told.`) : null,
      map.omittedPages ? el("p", {}, `${grouped(map.omittedPages)} more pages are too many to be drawn.`) : null);
  };
  canvas.addEventListener("mousemove", (event) => {
    const found = at(event);
    if (found) choose(found);
  });
  canvas.addEventListener("keydown", (event) => {
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    let [place, page] = chosen;
    page += step;
    while (page < 0 && place > 0) page += map.parts[(place -= 1)].states.length;
    while (page >= map.parts[place].states.length && place + 1 < map.parts.length) page -= map.parts[place++].states.length;
    choose([place, Math.min(Math.max(page, 0), Math.max(0, map.parts[place].states.length - 1))]);
    const y = map.parts[chosen[0]].top + Math.floor(chosen[1] / columns) * cell;
    if (y < box.scrollTop || y > box.scrollTop + box.clientHeight - cell) box.scrollTop = y - box.clientHeight / 2;
  });
  const select = el("select", { id: "object", onchange: () => show(select.selectedIndex) }, ...maps.map((one) =>
    el("option", {}, `${printable(shortened(short(one.owner), 120))}: ${figureOf(one)}`)));
  new ResizeObserver(lay).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  show(0);
  const section = el("section", { class: "section", id: "pages" }, el("h2", {}, title),
    el("div", { class: "tools" }, el("label", { for: "object" }, "Object"), select, legend), status, box, figures);
  (section as any).placeOf = (part: number, page: number) =>
    [(page % columns) * cell + cell / 2, map.parts[part].top + Math.floor(page / columns) * cell + cell / 2];
  return section;
}

// What lies between two addresses. Places stand by where they begin: what reaches into a page may begin far before it.
function within(places: Place[], start: number, end: number): Place[] {
  const found: Place[] = [];
  for (const one of places) {
    if (one.addr >= end) break;
    if (one.addr + one.size > start) found.push(one);
  }
  return found;
}

function hex(addr: number): string {
  return `0x${addr.toString(16)}`;
}
