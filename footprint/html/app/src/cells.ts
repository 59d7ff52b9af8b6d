// The section on pages: one cell for each page of an object, and a line on the page below the pointer.

import { cellCanvas } from "./cellcanvas";
import { el, fill, section } from "./dom";
import { printable, shortened, shortOwners } from "./names";
import { changeCounts, changedMaps, CHANGES } from "./pagechange";
import { type PageMapData, readMaps } from "./pagedata";
import { type PageMap, privateCount, STATES, type States, UNKNOWN } from "./pagemap";
import { describedCell, stateLegend, stateTable } from "./pagetext";
import type { Store } from "./store";
import { formatBytes, grouped } from "./units";

/** Make the section on the pages of an audit; null where there are none. */
export function pageMapSection(store: Store, data: PageMapData, pageBytes: number): HTMLElement | null {
  const maps = readMaps(data).sort((one, other) => privateCount(other) - privateCount(one));
  const drawnBytes = (map: PageMap) => privateCount(map) * pageBytes;
  if (!maps.length) return null;
  return cellSection(store, maps, STATES, pageBytes, "Page by page", (map) => `${formatBytes(drawnBytes(map))} private`, (map) => {
    const held = map.privateBytes ?? 0;
    if (held <= drawnBytes(map) || map.counts[UNKNOWN] || map.omittedPages) return null;
    return `The table above has ${formatBytes(held)} of it: which of its other pages the process writes is not known one by one.`;
  });
}

/** Make the section on how the pages of objects changed; null where they are not known of both audits. */
export function pageChangeSection(
  store: Store, old: PageMapData, now: PageMapData, pageBytes: number, renamed: Map<string, string>,
): HTMLElement | null {
  const [before, after] = [readMaps(old), readMaps(now)];
  if (!before.length || !after.length) return null;
  const title = "Pages that changed";
  const maps = changedMaps(before, after, renamed);
  if (!maps.length) {
    return section("pages", title,
      el("p", { class: "empty" }, "Every object has the private pages that it had."));
  }
  const figure = (map: PageMap) => {
    const { more, less } = changeCounts(map);
    return `pages +${grouped(more)} -${grouped(less)}`;
  };
  return cellSection(store, maps, CHANGES, pageBytes, title, figure,
    () => "Parts of one kind are compared in their order, and their pages from the first one on.");
}

function cellSection(
  store: Store, maps: PageMap[], states: States, pageBytes: number, title: string,
  figureOf: (map: PageMap) => string, remarkOn: (map: PageMap) => string | null,
): HTMLElement {
  const short = shortOwners(maps.map((one) => one.owner));
  const status = el("p", { class: "status", id: "cell", role: "status" });
  const figures = el("div");
  const canvas = cellCanvas(states, (cell) => fill(status, ...describedCell(maps[select.selectedIndex], states, cell, pageBytes)), maps[0]);
  const show = (map: PageMap) => {
    canvas.show(map, `Pages of ${printable(short(map.owner))}: the arrow keys move, the line above describes the page`);
    fill(status, "Point at a cell, or move with the arrow keys, to see what lies in that page.");
    const remark = remarkOn(map);
    fill(figures, stateTable(map, states), remark ? el("p", { class: "remark" }, remark) : null,
      map.variables ? null : el("p", { class: "remark" }, "A saved audit keeps the sections of a page, but not its variables: the report of the program itself shows them."),
      map.omittedNames ? el("p", {}, `${grouped(map.omittedNames)} more names are left out.`) : null,
      map.omittedPages ? el("p", {}, `${grouped(map.omittedPages)} more pages are left out.`) : null);
  };
  const select = el("select", { id: "object", onchange: () => show(maps[select.selectedIndex]) }, ...maps.map((one) =>
    el("option", {}, `${printable(shortened(short(one.owner), 120))}: ${figureOf(one)}`)));
  show(maps[0]);
  store.parts.pages = { placeOf: (part: number, page: number) => canvas.middleOf([part, page]) };
  return section("pages", title,
    el("div", { class: "tools" }, el("label", { for: "object" }, "Object"), select, stateLegend(maps, states)),
    status, canvas.element, figures);
}
