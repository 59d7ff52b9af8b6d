// The filter and the buttons above a table.

import { copy } from "./copy";
import { el, fill } from "./dom";
import type { Grid } from "./grid";
import { runInSlices } from "./scheduler";
import { csvLines, MOST_ROWS } from "./shownrows";
import type { Store } from "./store";
import { grouped, percent } from "./units";
import { chosenColours } from "./viewstate";

/** The filter and the buttons above a table. `clear` empties the filter. */
export function tableTools(
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
      grid.show(null);
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
    el("button", { onclick: () => grid.work.settled().then(act) }, text);
  const openAll = () => {
    grid.openAll(true);
    if (grid.rows.shown.length >= MOST_ROWS) fill(found, `the first ${grouped(grid.rows.shown.length)} rows are shown`);
  };
  const hasGroups = tree.children[0].some((node) => tree.children[node].length);
  const element = el("div", { class: "tools" }, filter, hasGroups && button("Open all", openAll),
    hasGroups && button("Close all", () => grid.openAll(false)), button("Copy as CSV", async () => copy((await runInSlices(csvLines(tree, grid.rows.shown), () => true))!.join(""), found, "The rows")), found, sum);
  const clear = () => {
    for (const one of ["filter", "colours"]) store.set(`${name}.${one}`, null);
  };
  return { element, clear };
}
