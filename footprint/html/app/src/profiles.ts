// Several heap profiles, what was counted over a whole run, and the heap of a process by a profile.

import type { HeapData } from "./data";
import { el, evidenceMark, plainTable, section } from "./dom";
import { functionTree, shareTree } from "./functiontrees";
import { growthTree } from "./growth";
import { printable } from "./names";
import type { Page } from "./page";
import { type Profile, profileOf } from "./profile";
import type { Store } from "./store";
import { table } from "./table";
import { formatTime } from "./times";
import { type Column, sums } from "./tree";
import { column } from "./treecolumns";
import type { FunctionTotalsRow, HeapAccount } from "./types";
import { formatBytes, grouped } from "./units";
import { treeView } from "./view";

/** Make the section on what was counted over the whole run; nothing if the profile counts nothing. */
export function totalsSection({ row, totals }: Profile, store: Store): HTMLElement | null {
  if (!totals.length) return null;
  const { tree, rowOf } = functionTree(totals);
  const unit = row.time_unit ?? "";
  const total = (label: string, own: (one: FunctionTotalsRow) => number | null, text: (size: number) => string): Column | null => {
    const values = sums(tree, rowOf.map((one) => (one === null ? null : own(one))));
    return values[0] === null ? null
      : column(label.toLowerCase(), label, (node) => values[node], (size) => (size === null ? "" : text(size)));
  };
  const lives = (node: number) => rowOf[node]?.lifetime ?? null;
  const allocated = sums(tree, rowOf.map((one) => one?.allocated_bytes ?? null));
  allocated.forEach((size, node) => (tree.areas[node] = Math.max(0, size ?? 0)));
  tree.columns = [
    total("Allocated", (one) => one.allocated_bytes, formatBytes), total("Blocks", (one) => one.allocated_blocks, grouped),
    total("Temporary", (one) => one.temporary_blocks, grouped),
    totals[0].lifetime === null ? null
      : column("lifetime", "Lifetime", lives, (time) => (time === null ? "" : formatTime(time, unit))),
    total("Read", (one) => one.read_bytes, formatBytes), total("Written", (one) => one.written_bytes, formatBytes),
    total("Leaked", (one) => one.leaked_bytes, formatBytes),
  ].filter((one) => one !== null);
  return section("totals", "By function, over the whole run",
    treeView(store, "totals", tree, "Over the whole run", [], false));
}

/** Make the table that compares several profiles. */
export function profilesTable(data: HeapData): HTMLElement {
  return plainTable(["profile", "snapshot", "in use", "known"], table(data.heap.profiles).rows().map((one) => {
    const chosen = profileOf(data, one.file).snapshots.find((snapshot) => snapshot.number === one.snapshot);
    return [
      printable(one.file), one.snapshot === null ? "" : String(one.snapshot),
      chosen ? formatBytes(chosen.used_bytes) : "", evidenceMark(one.evidence)];
  }), "Profiles");
}

/** Make the section on what the last of several profiles has more and less than the first. */
export function profileChangeSection({ heap }: HeapData, { store }: Page): HTMLElement {
  const profiles = table(heap.profiles).rows();
  const [first, last] = [profiles[0], profiles[profiles.length - 1]];
  const amount = last.counted === "events" ? grouped : formatBytes;
  const of = (file: string) => table(heap.heap).rows().filter((row) => row.file === file);
  const { tree, legend } = growthTree(of(first.file), of(last.file), amount);
  return section("change", `What grew from ${printable(first.file)} to ${printable(last.file)}`,
    tree.size > 1 ? treeView(store, "change", tree, "What grew", legend) : el("p", { class: "empty" }, "Each function asked for as much in both."));
}

/** Make the section on a heap that was joined with a profile. */
export function heapAccountSection(account: HeapAccount, { store }: Page): HTMLElement {
  const { tree, legend } = shareTree(table(account.shares), formatBytes);
  const figures: [string, number | null][] = [
    ["held by the process in its heap", account.held_bytes], ["apart, in mappings of their own", account.apart_bytes],
    ["asked for, as profiled", account.live_bytes], [`the allocator's own${account.is_extra_modelled ? ", by a model" : ", as profiled"}`, account.extra_bytes],
    [account.is_free_measured ? "free, as the allocator has it" : "free, and used before", account.free_bytes], ["beyond that", account.difference_bytes],
  ];
  const rows = figures.flatMap(([name, size]) => (size === null ? [] : [[name, formatBytes(size)]]));
  return section("heap", "The heap by who asked for it",
    el("p", {}, `By ${printable(account.file)}, a profile of another run (${account.format}, snapshot ${account.snapshot} of ${account.snapshot_count}${account.is_peak ? ", its peak" : ""}). ${
      account.has_end || account.is_peak ? "" : "Massif writes no snapshot at the end: what was freed after this one is unknown. "}`,
      evidenceMark(account.evidence)),
    plainTable(["what", "bytes"], rows, "What the heap is made of"),
    tree.size > 1 ? treeView(store, "heap", tree, "The heap by who asked for it", legend) : el("p", { class: "empty" }, "The profile has no call tree."));
}
