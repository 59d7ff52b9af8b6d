// The first section of a comparison: the figures of one process before and after, and their change for N processes.

import { type Count, countControl } from "./count";
import { table } from "./data";
import { choice, el, evidenceMark, fill, plainTable } from "./dom";
import { weakest } from "./evidence";
import { printable } from "./names";
import { atCount } from "./terms";
import type { DiffAnswer, FigureChange } from "./types";
import { formatBytes, formatChange, grouped } from "./units";
import { TITLES } from "./words";

/** The views of a comparison. */
export type Side = "change" | "before" | "after";

/** Make the section on the figures of a comparison. */
export function changeSection(diff: DiffAnswer, count: Count): HTMLElement {
  const order = Object.keys(TITLES);
  const rows = table(diff.figures).rows().sort((one, other) => order.indexOf(one.name) - order.indexOf(other.name));
  const main = ["per_process_bytes", "per_group_bytes", "private_bytes", "mapped_writable_bytes"]
    .map((name) => rows.find((one) => one.name === name && one.delta_bytes !== null)).find(Boolean);
  const deltaAt = (one: FigureChange, size: bigint) =>
    one.delta_bytes === null ? null : atCount([{ size_bytes: one.delta_bytes, is_once: one.is_once }], size);
  const size = (bytes: number | null) => (bytes === null ? "?" : formatBytes(bytes));
  const change = (bytes: number | bigint | null) => (bytes === null ? "?" : formatChange(bytes));
  const [noun, nouns] = table(diff.members).size ? ["group", "groups"] : ["process", "processes"];
  const verdict = el("p", { class: "verdict", role: "status", id: "verdict" });
  const view = el("div");
  count.watch((many) => {
    const all = main ? deltaAt(main, many) : null;
    fill(verdict, ...(main && all !== null
      ? [`${grouped(many)} ${many === 1n ? `${noun} costs` : `${nouns} cost`} `,
        el("strong", { id: "total", "data-bytes": all.toString() },
          all ? `${formatBytes(all < 0n ? -all : all)} ${all > 0n ? "more" : "less"}` : "the same"),
        main.is_noise ? " (within the spread of the starts)" : ""]
      : ["No figure is known of both."]));
    fill(view, plainTable(["figure", "before", "after", "change", `at ${grouped(many)}`, "known"], rows.map((one) => [
      TITLES[one.name], size(one.old_bytes), size(one.new_bytes), change(one.delta_bytes),
      change(deltaAt(one, many)), evidenceMark(weakest([one.old_evidence, one.new_evidence]))]), "Figures before and after"));
  });
  return el("section", { class: "answer", "aria-labelledby": "answer-title" },
    el("h2", { id: "answer-title" }, "What changed"), verdict, view, ...rootDetails(diff), countControl(count, nouns));
}

const fileName = (path: string) => path.slice(path.lastIndexOf("/") + 1);

/** Make a line for each library that is new because an object needs it now; what it brought folds under it. */
function rootDetails(diff: DiffAnswer): HTMLElement[] {
  const owners = table(diff.owner_changes).rows();
  return table(diff.roots).rows().map((root) => {
    const brought = owners.filter((one) => one.came_with === root.owner);
    const users = root.needed_by.map((path) => printable(fileName(path)));
    const why = users.length ? `which ${users.join(" and ")} now need${users.length > 1 ? "" : "s"}` : "which is opened at run time";
    const { location } = root;
    const link = location ? `; it is linked at ${printable(location.file)}${location.line ? `:${location.line}` : ""}` : "";
    const libraries = root.library_count === 1 ? "1 library" : `${grouped(root.library_count)} libraries`;
    return el("details", { class: "root" },
      el("summary", {}, `New: ${printable(root.name)}, ${why}: ${libraries}, ${formatBytes(root.retained_bytes)} retained${link}`),
      plainTable(["library", "change"], brought.map((one) => [printable(fileName(one.owner)), formatChange(one.delta_bytes)]),
        `What came with ${printable(root.name)}`));
  });
}

/** Make the switch between the views of a comparison. */
export function sideSwitch(onchoose: (side: Side) => void): HTMLElement {
  return choice("Show", [["change", "Change"], ["before", "Before"], ["after", "After"]], "change", onchoose);
}
