// A tree as a picture and a table that go together.

import { choice, el, fill } from "./dom";
import { copy, Grid } from "./grid";
import { KINDS } from "./ledger";
import { COLOURS, described, Picture, type Shape } from "./picture";
import type { Tree } from "./tree";
import { grouped } from "./units";

/** Colours and what they mean. */
export type Legend = (readonly [colour: number, text: string])[];

let made = 0;

/** Make the legend of the kinds of memory that a tree has. */
export function kindLegend(tree: Tree): Legend {
  return [...new Set(tree.colours)].sort((one, other) => one - other).filter((one) => one > 0)
    .map((one) => [one, KINDS[one]] as const);
}

/** Show a tree; `shape` is what the picture begins with, and null where there is none. */
export function treeView(tree: Tree, label: string, legend: Legend, shape: Shape | null = "icicle"): HTMLElement {
  made += 1;
  const status = el("p", { class: "status", "aria-live": "off" });
  const found = el("span", { class: "found", role: "status" });
  const crumbs = el("nav", { class: "crumbs", "aria-label": `${label}: zoomed to` });
  let selected = -1;

  const hover = (node: number) => {
    picture.mark(node);
    grid.hover(node);
    fill(status, node >= 0 ? described(tree, node) : selected >= 0 ? described(tree, selected) : hint);
  };
  const choose = (node: number) => {
    selected = node;
    picture.mark(-1, node);
    fill(status, described(tree, node));
  };
  const zoom = (node: number) => {
    // A leaf is looked at in what it lies in.
    const target = tree.children[node].length ? node : Math.max(0, tree.parents[node]);
    picture.zoomTo(target);
    picture.mark(-1, node);
    fill(crumbs, ...[0, ...tree.path(target)].map((one) =>
      el("button", { type: "button", "aria-current": one === target ? "true" : null, onclick: () => zoom(one) },
        tree.names[one])));
  };
  const grid = new Grid(tree, label, `g${made}`, { onselect: choose, onhover: hover, onopen: zoom });
  const picture = new Picture(tree, label, {
    onhover: hover,
    onclick: (node) => then(() => {
      if (!grid.has(node)) clear();
      grid.select(node, true);
      zoom(node);
    }),
  });
  if (shape) picture.setShape(shape);
  const hint = !shape ? "" : "Point at a part to read it; click it, or press Enter in the table, to look closer.";
  fill(status, hint);

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
  const unfilter = () => {
    grid.unfilter();
    fill(found);
  };
  const clear = () => {
    filter.value = "";
    unfilter();
  };
  // Of a busy table the rows are not yet those that what is done next is meant for.
  const then = async (act: () => void) => {
    await grid.settled();
    act();
  };
  const openAll = () => {
    grid.openAll(true);
    if (grid.isCut) fill(found, `the first ${grouped(grid.rowCount)} rows are shown`);
  };
  const tools = el("div", { class: "tools" },
    filter,
    el("button", { type: "button", onclick: () => then(openAll) }, "Open all"),
    el("button", { type: "button", onclick: () => then(() => grid.openAll(false)) }, "Close all"),
    el("button", { type: "button", onclick: () => then(() => void copy(grid.csv(), found, "The rows")) }, "Copy as CSV"),
    found,
  );
  const shapes = choice("Picture", [["icicle", "Icicle"], ["treemap", "Treemap"], ["sunburst", "Sunburst"]] as const,
    shape ?? "icicle", (value) => picture.setShape(value));
  const key = el("ul", { class: "legend" }, ...legend.map(([colour, text]) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = COLOURS[colour];
    return el("li", {}, swatch, text);
  }), tree.hatched.some(Boolean) && el("li", {}, el("span", { class: "swatch hatched" }), "estimated, or its owner assumed"));
  const view = el("div", { class: "view" },
    ...(shape ? [el("div", { class: "tools" }, shapes, key), crumbs, picture.element, status] : []), tools, grid.element);
  zoom(0);
  fill(status, tree.areas[0] ? `${hint} ${tree.amount(tree.areas[0])} in all.` : hint);
  (view as any).parts = { tree, grid, picture };
  return view;
}
