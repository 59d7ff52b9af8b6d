// The cost of one in its parts, and the cost of N.

import { colour } from "./colours";
import { el, evidenceMark, fill, plainTable } from "./dom";
import type { Page } from "./page";
import { table } from "./table";
import { atCount, fitting, paidByEach } from "./terms";
import type { Evidence, Projection, Term } from "./types";
import { formatBytes, percent } from "./units";

/** The cost of one and of N, from the terms of a projection. */
export class Costs {
  readonly each: bigint;
  readonly once: bigint;

  constructor(private readonly terms: readonly Term[], readonly evidence: Evidence) {
    this.each = atCount(terms.filter((term) => !term.is_once), 1n)!;
    this.once = this.total(1n) - this.each;
  }

  /** Compute the cost of `count` processes. */
  total(count: bigint): bigint {
    return atCount(this.terms, count)!;
  }

  /** Compute the cost of `count` processes if each pays as much at some moment of its life. */
  totalAt(eachBytes: number, count: bigint): bigint {
    return atCount([...this.terms.filter((term) => term.is_once), ...paidByEach(eachBytes)], count)!;
  }

  /** Compute how many fit into a memory; null where one costs nothing, so that any number fits. */
  fitting(memory: bigint): bigint | null {
    return fitting(this.terms, memory);
  }
}

/** Make the table of the cost at moments in the life of a forked worker. */
export function momentsTable(projection: Projection, { count }: Page): HTMLElement | null {
  const points = table(projection.points).rows();
  if (!points.length) return null;
  const costs = new Costs(table(projection.terms).rows(), projection.evidence);
  const view = el("div");
  count.watch((many) => fill(view, plainTable(["at this moment", "each", "all", "known"], points.map((point) => [
    point.name, formatBytes(point.each_bytes), formatBytes(costs.totalAt(point.each_bytes, many)),
    evidenceMark(point.evidence)]), "Moments of its life")));
  return view;
}

/** Make the tiles of the parts of a cost. */
export function tiles(terms: Term[], costs: Costs, noun: string): HTMLElement {
  const known = (evidence: string, more = "") => el("dd", { class: "how" }, evidenceMark(evidence), more && ` ${more}`);
  return el("dl", { class: "tiles" },
    el("div", { class: "tile whole" }, el("dt", {}, `One ${noun}`),
      el("dd", { id: "each", "data-bytes": costs.each.toString() }, formatBytes(costs.each)), known(costs.evidence)),
    ...terms.map((term) => el("div", { class: `tile${term.is_once ? " once" : ""}` },
      el("dt", {}, term.name),
      el("dd", { class: "part", "data-bytes": String(term.size_bytes) }, formatBytes(term.size_bytes)),
      known(term.evidence, term.is_once ? "once" : ""))));
}

/** Make one bar with the parts of a cost, as wide as their shares. */
export function partsBar(terms: Term[], whole: bigint): HTMLElement | null {
  if (terms.length < 2 || whole <= 0n) return null;
  const parts = terms.map((term, place) => {
    const part = el("span");
    // The first term is memory of the process, the others are of the kernel or shared.
    part.style.background = colour(place ? "kernel" : "private");
    part.style.width = `${(100 * term.size_bytes) / Number(whole)}%`;
    return part;
  });
  const text = terms.map((term) => `${term.name} ${percent(term.size_bytes, Number(whole))}`).join(", ");
  return el("div", {}, el("div", { class: "parts", role: "img", "aria-label": text }, ...parts), el("p", { class: "small" }, text));
}
