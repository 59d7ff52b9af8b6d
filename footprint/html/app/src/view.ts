// A tree as a picture and a table that follow each other.

import { choice } from "./choice";
import { COLOURS } from "./colours";
import { el, fill } from "./dom";
import { copy, Grid, type Sort } from "./grid";
import { KIND_NAMES } from "./ledger";
import { decoded, encoded } from "./names";
import { described, OTHERS, Picture, type Shape } from "./picture";
import { runInSlices } from "./scheduler";
import type { Store } from "./store";
import type { Tree } from "./tree";
import { grouped, percent } from "./units";

/** Colours and their meanings. */
export type Legend = (readonly [colour: number, text: string])[];

let viewCount = 0;

/** Make the legend of the kinds of memory in a tree. */
export function kindLegend(tree: Tree): Legend {
  return [...new Set(tree.colours.filter((_, node) => tree.areas[node] > 0))].sort((one, other) => one - other).filter((one) => one > 0)
    .map((one) => [one, KIND_NAMES[one]] as const);
}

const SHAPES: readonly (readonly [Shape, string])[] = [["icicle", "Icicle"], ["treemap", "Treemap"], ["sunburst", "Sunburst"]];

/**
 * Show a tree as a picture and a table, or as a table alone.
 *
 * The values `NAME.zoom`, `NAME.others`, `NAME.sort`, `NAME.filter`, `NAME.colours` and `NAME.shape` of the state belong to it.
 */
export function treeView(
  store: Store, name: string, tree: Tree, label: string, legend: Legend, hasPicture = true,
): HTMLElement {
  viewCount += 1;
  const status = el("p", { class: "status", "aria-live": "off" });
  const tip = el("div", { class: "tip", "aria-hidden": "true", hidden: true });
  const crumbs = el("nav", { class: "crumbs", "aria-label": `${label}: zoomed to` });
  const hint = hasPicture ? "Point at a part to read it; click it, or press Enter in the table, to zoom in." : "";
  let selected = -1;

  const hover = (node: number, event?: MouseEvent) => {
    picture.mark(node);
    grid.hover(node);
    const text = node === OTHERS ? picture.describe(node) : node >= 0 ? described(tree, node) : "";
    fill(status, text || (selected >= 0 ? described(tree, selected) : hint));
    showTip(tip, picture.element, text, event);
  };
  const select = (node: number) => {
    selected = node;
    picture.mark(-1, node);
    fill(status, described(tree, node));
  };
  const zoom = (node: number, isRest = false) => {
    // A leaf is shown within its parent.
    const target = tree.children[node].length ? node : Math.max(0, tree.parents[node]);
    store.set(`${name}.zoom`, target ? pathOf(tree, target) : null);
    store.set(`${name}.others`, isRest ? "1" : null);
    picture.mark(-1, node);
  };
  const showZoom = () => {
    const target = nodeOf(tree, store.get(`${name}.zoom`));
    picture.zoomTo(target, store.get(`${name}.others`) !== null);
    const isRest = picture.isRest;
    const crumb = (node: number, text: string, isCurrent: boolean) =>
      el("button", { "aria-current": isCurrent ? "true" : null, onclick: () => zoom(node) }, text);
    fill(crumbs, ...[0, ...tree.path(target)].map((one) => crumb(one, tree.names[one], one === target && !isRest)),
      isRest && el("button", { "aria-current": "true" }, `${picture.others().length} below 5%`));
  };
  const order = sortState(store, `${name}.sort`, tree);
  const grid = new Grid(tree, label, `g${viewCount}`, order.get(), { onsort: order.set, onselect: select, onhover: hover, onopen: zoom });
  const { element: tools, clear } = tableTools(store, name, grid, label, (found) => picture.highlight(found));
  const picture = new Picture(tree, label, {
    onhover: hover,
    onclick: async (node) => {
      if (node === OTHERS) return zoom(picture.root, true);
      await grid.settled();
      if (!grid.has(node)) clear();
      grid.select(node, true);
      zoom(node);
    },
  });
  const shape = choice(store, `${name}.shape`, "Picture", SHAPES);
  const view = el("div", { class: "view" },
    ...(hasPicture
      ? [el("div", { class: "tools" }, shape.element, legendList(store, `${name}.colours`, tree, legend)), crumbs,
        el("div", { class: "picture-box" }, picture.element, tip), status]
      : []),
    tools, grid.element);
  const showShape = () => hasPicture && picture.setShape(shape.value);
  store.watch(`${name}.sort`, () => void grid.sort(order.get()));
  store.watch(`${name}.zoom`, showZoom);
  store.watch(`${name}.others`, showZoom);
  store.watch(`${name}.shape`, showShape);
  showShape();
  showZoom();
  fill(status, tree.areas[0] ? `${hint} ${tree.amount(tree.areas[0])} in all.` : hint);
  store.parts[name] = { tree, grid, picture };
  return view;
}

// Show a text beside the pointer, within the picture.
function showTip(tip: HTMLElement, canvas: HTMLElement, text: string, event?: MouseEvent): void {
  tip.hidden = !event || !text;
  if (!event || !text) return;
  fill(tip, text);
  const x = event.offsetX + 14;
  const isRight = x + tip.offsetWidth <= canvas.clientWidth;
  tip.style.left = `${isRight ? x : Math.max(0, event.offsetX - tip.offsetWidth - 8)}px`;
  tip.style.top = `${event.offsetY + 18}px`;
}

// The path of a node as a text: the names from the top down.
function pathOf(tree: Tree, node: number): string {
  return tree.path(node).map((one) => encoded(tree.names[one])).join("/");
}

// Find the node with a path; the whole tree where there is none.
function nodeOf(tree: Tree, path: string | null): number {
  let node: number | undefined = 0;
  for (const name of path?.split("/").map(decoded) ?? []) {
    node = tree.children[node].find((one) => tree.names[one] === name);
    if (node === undefined) return 0;
  }
  return node;
}

// The order of a table in the state: the key of a column, `name` for the names; with a minus where it descends.
function sortState(store: Store, name: string, tree: Tree): { get(): Sort; set(sort: Sort): void } {
  const given: Sort = { column: tree.columns[tree.sortedBy], isDescending: true };
  const text = ({ column, isDescending }: Sort) => `${isDescending ? "-" : ""}${column?.key ?? "name"}`;
  return {
    get() {
      const told = store.get(name);
      const key = told?.replace(/^-/, "");
      const column = key === "name" ? null : tree.columns.find((one) => one.key === key);
      return told === null || column === undefined ? given : { column, isDescending: told.startsWith("-") };
    },
    set(sort) {
      store.set(name, given.column !== undefined && text(sort) === text(given) ? null : text(sort));
    },
  };
}

// The colours of the legend that the reader chose; none for all of them.
function chosenColours(store: Store, name: string): Set<number> {
  return new Set((store.get(name) ?? "").split(",").filter(Boolean).map(Number));
}

// The meanings of the colours: a click shows only what has this colour, or adds it to what is shown.
function legendList(store: Store, name: string, tree: Tree, legend: Legend): HTMLElement {
  const buttons = legend.map(([colour, text]) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = COLOURS[colour];
    return el("button", { onclick: () => {
      const chosen = chosenColours(store, name);
      if (!chosen.delete(colour)) chosen.add(colour);
      store.set(name, chosen.size ? [...chosen].sort((one, other) => one - other).join(",") : null);
    } }, swatch, text);
  });
  const press = () => {
    const chosen = chosenColours(store, name);
    legend.forEach(([colour], place) => buttons[place].setAttribute("aria-pressed", String(chosen.has(colour))));
  };
  store.watch(name, press);
  press();
  return el("ul", { class: "legend" }, ...buttons.map((one) => el("li", {}, one)),
    tree.hatched.some(Boolean) && el("li", {}, el("span", { class: "swatch hatched" }), "estimated, or its owner assumed"));
}

// The filter and the buttons above a table. `clear` empties the filter.
function tableTools(
  store: Store, name: string, grid: Grid, label: string, highlight: (marks: Uint8Array | null) => void,
): { element: HTMLElement; clear: () => void } {
  const { tree } = grid;
  const found = el("span", { class: "found", role: "status" });
  const sum = el("span", { class: "found-sum" });
  const filter = el("input", {
    type: "search", placeholder: "Filter by name", "aria-label": `${label}: filter by name`, maxlength: 1000,
    oninput: () => store.set(`${name}.filter`, filter.value.trim() ? filter.value : null),
  });
  const show = async () => {
    const text = store.get(`${name}.filter`) ?? "";
    const colours = chosenColours(store, `${name}.colours`);
    if (filter.value.trim() !== text.trim()) filter.value = text;
    if (!text.trim() && !colours.size) {
      grid.unfilter();
      highlight(null);
      fill(found);
      fill(sum);
      return;
    }
    const result = await grid.filter(text.trim(), colours);
    if (!result) return;
    highlight(result.marks);
    fill(found, result.count === 1 ? "1 name" : `${grouped(result.count)} names`);
    fill(sum, tree.areas[0] > 0 ? `${tree.amount(result.area)} in all, ${percent(result.area, tree.areas[0])}` : "");
  };
  for (const one of ["filter", "colours"]) store.watch(`${name}.${one}`, () => void show());
  if (store.get(`${name}.filter`) || store.get(`${name}.colours`)) void show();
  // A click is meant for the rows that a running filter or sort will show.
  const button = (text: string, act: () => void) =>
    el("button", { onclick: () => grid.settled().then(act) }, text);
  const openAll = () => {
    grid.openAll(true);
    if (grid.isCut) fill(found, `the first ${grouped(grid.rowCount)} rows are shown`);
  };
  const element = el("div", { class: "tools" }, filter, button("Open all", openAll),
    button("Close all", () => grid.openAll(false)), button("Copy as CSV", async () => copy((await runInSlices(grid.csvLines(), () => true))!.join(""), found, "The rows")), found, sum);
  const clear = () => {
    for (const one of ["filter", "colours"]) store.set(`${name}.${one}`, null);
  };
  return { element, clear };
}
