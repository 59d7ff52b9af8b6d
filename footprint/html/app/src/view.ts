// A tree as a picture and a table that follow each other.

import { choice } from "./choice";
import { el, fill } from "./dom";
import { copy, Grid, type Sort } from "./grid";
import { KIND_NAMES } from "./ledger";
import { COLOURS, described, Picture, type Shape } from "./picture";
import { decoded, encoded } from "./names";
import type { Store } from "./store";
import type { Tree } from "./tree";
import { grouped } from "./units";

/** Colours and their meanings. */
export type Legend = (readonly [colour: number, text: string])[];

let viewCount = 0;

/** Make the legend of the kinds of memory in a tree. */
export function kindLegend(tree: Tree): Legend {
  return [...new Set(tree.colours)].sort((one, other) => one - other).filter((one) => one > 0)
    .map((one) => [one, KIND_NAMES[one]] as const);
}

/**
 * Show a tree as a picture and a table, or as a table alone.
 *
 * The values `NAME.zoom`, `NAME.sort`, `NAME.filter` and `NAME.shape` of the state belong to it.
 */
export function treeView(
  store: Store, name: string, tree: Tree, label: string, legend: Legend, hasPicture = true,
): HTMLElement {
  viewCount += 1;
  const status = el("p", { class: "status", "aria-live": "off" });
  const crumbs = el("nav", { class: "crumbs", "aria-label": `${label}: zoomed to` });
  const hint = hasPicture ? "Point at a part to read it; click it, or press Enter in the table, to zoom in." : "";
  let selected = -1;

  const hover = (node: number) => {
    picture.mark(node);
    grid.hover(node);
    fill(status, node >= 0 ? described(tree, node) : selected >= 0 ? described(tree, selected) : hint);
  };
  const select = (node: number) => {
    selected = node;
    picture.mark(-1, node);
    fill(status, described(tree, node));
  };
  const zoom = (node: number) => {
    // A leaf is shown within its parent.
    const target = tree.children[node].length ? node : Math.max(0, tree.parents[node]);
    store.set(`${name}.zoom`, target ? written(tree, target) : null);
    picture.mark(-1, node);
  };
  const showZoom = () => {
    const target = nodeOf(tree, store.get(`${name}.zoom`));
    picture.zoomTo(target);
    fill(crumbs, ...[0, ...tree.path(target)].map((one) =>
      el("button", { type: "button", "aria-current": one === target ? "true" : null, onclick: () => zoom(one) },
        tree.names[one])));
  };
  const order = sortState(store, `${name}.sort`, tree);
  const grid = new Grid(tree, label, `g${viewCount}`, order.get(), { onsort: order.set, onselect: select, onhover: hover, onopen: zoom });
  const { element: tools, clear } = tableTools(store, `${name}.filter`, grid, label);
  const picture = new Picture(tree, label, {
    onhover: hover,
    onclick: async (node) => {
      await grid.settled();
      if (!grid.has(node)) clear();
      grid.select(node, true);
      zoom(node);
    },
  });
  const shape = choice(store, `${name}.shape`, "Picture", SHAPES);
  const view = el("div", { class: "view" },
    ...(hasPicture ? [el("div", { class: "tools" }, shape.element, legendList(tree, legend)), crumbs, picture.element, status] : []),
    tools, grid.element);
  const showShape = () => hasPicture && picture.setShape(shape.value);
  store.watch(`${name}.sort`, () => void grid.sort(order.get()));
  store.watch(`${name}.zoom`, showZoom);
  store.watch(`${name}.shape`, showShape);
  showShape();
  showZoom();
  fill(status, tree.areas[0] ? `${hint} ${tree.amount(tree.areas[0])} in all.` : hint);
  store.parts[name] = { tree, grid, picture };
  return view;
}

const SHAPES: readonly (readonly [Shape, string])[] = [["icicle", "Icicle"], ["treemap", "Treemap"], ["sunburst", "Sunburst"]];

// The path of a node as a text: the names from the top down.
function written(tree: Tree, node: number): string {
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

function legendList(tree: Tree, legend: Legend): HTMLElement {
  return el("ul", { class: "legend" }, ...legend.map(([colour, text]) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = COLOURS[colour];
    return el("li", {}, swatch, text);
  }), tree.hatched.some(Boolean) && el("li", {}, el("span", { class: "swatch hatched" }), "estimated, or its owner assumed"));
}

// The filter and the buttons above a table. `clear` empties the filter.
function tableTools(store: Store, name: string, grid: Grid, label: string): { element: HTMLElement; clear: () => void } {
  const found = el("span", { class: "found", role: "status" });
  const filter = el("input", {
    type: "search", placeholder: "Filter by name", "aria-label": `${label}: filter by name`, maxlength: 1000,
    oninput: () => store.set(name, filter.value.trim() ? filter.value : null),
  });
  const show = async () => {
    const text = store.get(name) ?? "";
    if (filter.value.trim() !== text.trim()) filter.value = text;
    if (!text.trim()) {
      grid.unfilter();
      fill(found);
      return;
    }
    const count = await grid.filter(text.trim());
    if (count !== null) fill(found, count === 1 ? "1 name" : `${grouped(count)} names`);
  };
  store.watch(name, () => void show());
  if (store.get(name)) void show();
  // A click is meant for the rows that a running filter or sort will show.
  const button = (text: string, act: () => void) =>
    el("button", { type: "button", onclick: () => grid.settled().then(act) }, text);
  const openAll = () => {
    grid.openAll(true);
    if (grid.isCut) fill(found, `the first ${grouped(grid.rowCount)} rows are shown`);
  };
  const element = el("div", { class: "tools" }, filter, button("Open all", openAll),
    button("Close all", () => grid.openAll(false)), button("Copy as CSV", () => void copy(grid.csv(), found, "The rows")), found);
  return { element, clear: () => store.set(name, null) };
}
