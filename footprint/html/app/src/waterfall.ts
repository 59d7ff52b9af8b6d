// The way from the old cost to the new one, a step for each owner.

import { colour } from "./colours";
import { el } from "./dom";
import { printable, shortened, shortOwners } from "./names";
import { table } from "./table";
import type { DiffAnswer, FigureChange } from "./types";
import { formatBytes, formatChange, grouped } from "./units";

const MOST_STEPS = 8;

/** What a comparison says of the change of a cost. */
export type Changes = Pick<DiffAnswer, "figures"> & Partial<Pick<DiffAnswer, "cost" | "members" | "owner_changes" | "roots">>;

interface Step {
  name: string;
  delta: number;
}

// What came with a new library is one step, named as the library.
function steps(diff: Changes): Step[] {
  const owners = table(diff.owner_changes).rows();
  const roots = new Map(table(diff.roots).rows().map((one) => [one.owner, one]));
  const short = shortOwners(owners.map((one) => one.owner));
  const found = owners.filter((one) => !roots.has(one.came_with ?? one.owner)).map((one) => ({ name: short(one.owner), delta: one.delta_bytes }));
  for (const { name, brought_count, delta_bytes } of roots.values()) {
    found.push({ name: name + (brought_count > 1 ? ` with ${grouped(brought_count - 1)} more` : ""), delta: delta_bytes });
  }
  return found.filter((one) => one.delta).sort((one, other) => Math.abs(other.delta) - Math.abs(one.delta));
}

/** Draw the steps from a figure before to the figure after; null where none is known. The last one leads to the figure after. */
export function waterfall(diff: Changes, main: FigureChange | undefined): HTMLElement | null {
  const all = steps(diff);
  if (!main || main.old_bytes === null || main.new_bytes === null || !all.length) return null;
  const shown = all.slice(0, MOST_STEPS);
  let at = main.old_bytes;
  const places = shown.map((one) => (at += one.delta));
  if (at !== main.new_bytes) {
    const restCount = all.length - shown.length;
    shown.push({ name: restCount ? `${grouped(restCount)} others` : "what no owner has alone", delta: main.new_bytes - at });
    places.push(main.new_bytes);
  }
  const most = Math.max(main.old_bytes, main.new_bytes, ...places, 1);
  const row = (name: string, from: number, to: number, text: string, meaning: "grew" | "shrank" | "rest") => {
    const bar = el("span", { class: "step" });
    bar.style.marginInlineStart = `${(100 * Math.min(from, to)) / most}%`;
    bar.style.width = `${(100 * Math.abs(to - from)) / most}%`;
    bar.style.background = colour(meaning);
    return el("tr", {}, el("th", { scope: "row" }, printable(shortened(name, 60))), el("td", { "aria-hidden": "true" }, bar), el("td", {}, text));
  };
  return el("table", { class: "waterfall", "aria-label": "From before to after" }, el("tbody", {},
    row("before", 0, main.old_bytes, formatBytes(main.old_bytes), "rest"),
    ...shown.map((one, place) => row(one.name, places[place] - one.delta, places[place], formatChange(one.delta), one.delta > 0 ? "grew" : "shrank")),
    row("after", 0, main.new_bytes, formatBytes(main.new_bytes), "rest")));
}
