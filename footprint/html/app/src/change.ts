// The first section of a comparison: the figures of one process before and after, and their change for N processes.

import { countControl } from "./count";
import { answerSection, el, evidenceMark, fill, plainTable } from "./dom";
import { weakest } from "./evidence";
import type { Page } from "./page";
import { rootDetails } from "./roots";
import { table } from "./table";
import { atCount, type Paid } from "./terms";
import type { FigureChange } from "./types";
import { formatBytes, formatChange, grouped } from "./units";
import { type Changes, waterfall } from "./waterfall";
import { TITLES } from "./words";

/** Make the section on the figures of a comparison, with the lines on the cost of one and of N where nothing else says them. */
export function changeSection(diff: Changes, { count }: Page, hasOne = true, hasMany = true): HTMLElement {
  const order = Object.keys(TITLES);
  const rows = table(diff.figures).rows().sort((one, other) => order.indexOf(one.name) - order.indexOf(other.name));
  const main = ["per_process_bytes", "per_group_bytes", "private_bytes", "mapped_writable_bytes"]
    .map((name) => rows.find((one) => one.name === name && one.delta_bytes !== null)).find(Boolean);
  const paid = (bytes: number | null, is_once: boolean | null) => (bytes === null ? [] : [{ size_bytes: bytes, is_once }]);
  // What N cost, else the figure of one: in another model each pays something else, and all pay more or less once.
  const cost = diff.cost;
  const terms: Paid[] = cost ? [...paid(cost.each_delta_bytes, false), ...paid(cost.once_delta_bytes, true)]
    : main ? paid(main.delta_bytes, main.is_once) : [];
  const deltaAt = (one: FigureChange, size: bigint) => (one.delta_bytes === null ? null : atCount(paid(one.delta_bytes, one.is_once), size));
  const size = (bytes: number | null) => (bytes === null ? "?" : formatBytes(bytes));
  const change = (bytes: number | bigint | null) => (bytes === null ? "?" : formatChange(bytes));
  const moreOrLess = (bytes: number | bigint) => (bytes ? `${formatBytes(bytes < 0 ? -bytes : bytes)} ${bytes > 0 ? "more" : "less"}` : "as much as before");
  const [noun, nouns] = table(diff.members).size ? ["group", "groups"] : ["process", "processes"];
  const one = el("p", { class: "verdict", id: "one" }, ...(main
    ? [`One ${noun} costs `, el("strong", {}, moreOrLess(main.delta_bytes!)), main.is_noise ? " (within the spread of the starts)" : ""]
    : ["No figure is known of both."]));
  const verdict = el("p", { class: "verdict", role: "status", id: "verdict" });
  const view = el("div");
  count.watch((many) => {
    const all = terms.length ? atCount(terms, many)! : null;
    verdict.hidden = many === 1n || all === null;
    if (all !== null) {
      fill(verdict, `${grouped(many)} ${many === 1n ? `${noun} costs` : `${nouns} cost`} `,
        el("strong", { id: "total", "data-bytes": all.toString() }, moreOrLess(all)),
        main && cost && cost.each_delta_bytes !== main.delta_bytes ? ` (${moreOrLess(cost.each_delta_bytes)} each, with what it shares now)` : "",
        cost?.once_delta_bytes ? `, with ${moreOrLess(cost.once_delta_bytes)} that all pay once` : "");
    }
    fill(view, plainTable(["figure", "before", "after", "change", `at ${grouped(many)}`, "known"], rows.map((one) => [
      TITLES[one.name], size(one.old_bytes), size(one.new_bytes), change(one.delta_bytes),
      change(deltaAt(one, many)), evidenceMark(weakest([one.old_evidence, one.new_evidence]))]), "Figures before and after"));
  });
  return answerSection("What changed", hasOne && one, hasMany && verdict, ...rootDetails(diff),
    el("div", { class: "two steps" }, waterfall(diff, main), view), countControl(count, nouns));
}
