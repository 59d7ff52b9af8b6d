// A tree as a picture and a table that follow each other.

import { choice, el, fill } from "./dom";
import { copy, Grid } from "./grid";
import { KIND_NAMES } from "./ledger";
import { COLOURS, described, Picture, type Shape } from "./picture";
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

/** Show a tree; `shape` is the first picture, null for a table alone. */
export function treeView(tree: Tree, label: string, legend: Legend, shape: Shape | null = "icicle"): HTMLElement {
  viewCount += 1;
  const status = el("p", { class: "status", "aria-live": "off" });
  const crumbs = el("nav", { class: "crumbs", "aria-label": `${label}: zoomed to` });
  const hint = shape ? "Point at a part to read it; click it, or press Enter in the table, to zoom in." : "";
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
    picture.zoomTo(target);
    picture.mark(-1, node);
    fill(crumbs, ...[0, ...tree.path(target)].map((one) =>
      el("button", { type: "button", "aria-current": one === target ? "true" : null, onclick: () => zoom(one) },
        tree.names[one])));
  };
  const grid = new Grid(tree, label, `g${viewCount}`, { onselect: select, onhover: hover, onopen: zoom });
  const { element: tools, clear } = tableTools(grid, label);
  const picture = new Picture(tree, label, {
    onhover: hover,
    onclick: async (node) => {
      await grid.settled();
      if (!grid.has(node)) clear();
      grid.select(node, true);
      zoom(node);
    },
  });
  if (shape) picture.setShape(shape);
  const view = el("div", { class: "view" },
    ...(shape ? [el("div", { class: "tools" }, shapeSwitch(picture, shape), legendList(tree, legend)), crumbs, picture.element, status] : []),
    tools, grid.element);
  zoom(0);
  fill(status, tree.areas[0] ? `${hint} ${tree.amount(tree.areas[0])} in all.` : hint);
  // Tests read the tree and the places of its parts here.
  return Object.assign(view, { parts: { tree, grid, picture } });
}

function shapeSwitch(picture: Picture, shape: Shape): HTMLElement {
  return choice("Picture", [["icicle", "Icicle"], ["treemap", "Treemap"], ["sunburst", "Sunburst"]] as const, shape,
    (value) => picture.setShape(value));
}

function legendList(tree: Tree, legend: Legend): HTMLElement {
  return el("ul", { class: "legend" }, ...legend.map(([colour, text]) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = COLOURS[colour];
    return el("li", {}, swatch, text);
  }), tree.hatched.some(Boolean) && el("li", {}, el("span", { class: "swatch hatched" }), "estimated, or its owner assumed"));
}

// The filter and the buttons above a table. `clear` empties the filter.
function tableTools(grid: Grid, label: string): { element: HTMLElement; clear: () => void } {
  const found = el("span", { class: "found", role: "status" });
  const unfilter = () => {
    grid.unfilter();
    fill(found);
  };
  const filter = el("input", {
    type: "search", placeholder: "Filter by name", "aria-label": `${label}: filter by name`,
    maxlength: 1000,
    oninput: async () => {
      const text = filter.value.trim();
      if (!text) return unfilter();
      const count = await grid.filter(text);
      if (count !== null) fill(found, count === 1 ? "1 name" : `${grouped(count)} names`);
    },
  });
  // A click is meant for the rows that a running filter or sort will show.
  const button = (text: string, act: () => void) =>
    el("button", { type: "button", onclick: () => grid.settled().then(act) }, text);
  const openAll = () => {
    grid.openAll(true);
    if (grid.isCut) fill(found, `the first ${grouped(grid.rowCount)} rows are shown`);
  };
  const element = el("div", { class: "tools" }, filter, button("Open all", openAll),
    button("Close all", () => grid.openAll(false)), button("Copy as CSV", () => void copy(grid.csv(), found, "The rows")), found);
  const clear = () => {
    filter.value = "";
    unfilter();
  };
  return { element, clear };
}
