// A tree as a picture and a table that follow each other.

import { OTHERS, SHAPES } from "./boxes";
import { described } from "./boxtext";
import { choice } from "./choice";
import { el, fill } from "./dom";
import { Grid } from "./grid";
import { type Legend, legendList } from "./legend";
import { picture as makePicture } from "./picture";
import type { Store } from "./store";
import { tableTools } from "./tabletools";
import { crumbsOf, showTip } from "./tip";
import type { Tree } from "./tree";
import { sortState, zoomState } from "./viewstate";

let viewCount = 0;

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
  const hint = hasPicture ? "Point at a part to read it; click it, or press Enter in the table, to zoom in." : "Choose a row to read all of it.";
  let selected = -1;

  const hover = (node: number, event?: MouseEvent) => {
    picture.mark(node);
    grid.view.hover(node);
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
    zoomed.set(node, isRest);
    picture.mark(-1, node);
  };
  const zoomed = zoomState(store, name, tree);
  const order = sortState(store, `${name}.sort`, tree);
  const grid = new Grid(tree, label, `g${viewCount}`, order.get(), order.set, { onselect: select, onhover: hover, onopen: zoom });
  const { element: tools, clear } = tableTools(store, name, grid, label, (found) => picture.highlight(found));
  const picture = makePicture(tree, label, {
    onhover: hover,
    onclick: async (node) => {
      if (node === OTHERS) return zoom(picture.root, true);
      await grid.work.settled();
      if (!grid.rows.has(node)) clear();
      grid.select(node);
      zoom(node);
    },
  });
  const shape = choice(store, `${name}.shape`, "Picture", SHAPES);
  const view = el("div", { class: "view" },
    ...(hasPicture
      ? [el("div", { class: "tools" }, shape.element, legendList(store, `${name}.colours`, tree, legend)), crumbs,
        el("div", { class: "picture-box" }, picture.element, tip), status]
      : []),
    tools, !hasPicture && status, grid.element);
  store.watch(`${name}.sort`, () => void grid.sort(order.get()));
  store.remake([`${name}.shape`], () => picture.setShape(shape.value));
  store.remake([`${name}.zoom`, `${name}.others`], () => {
    const [node, isRest] = zoomed.get();
    picture.zoomTo(node, isRest);
    fill(crumbs, ...crumbsOf(tree, node, isRest ? `${picture.others().length} below 5%` : null, zoom));
  });
  fill(status, tree.areas[0] ? `${hint} ${tree.amount(tree.areas[0])} in all: shares are of this.` : hint);
  store.parts[name] = { tree, grid, picture };
  return view;
}
