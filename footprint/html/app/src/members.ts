// The processes of a group, and how they changed.

import { el, plainTable, section } from "./dom";
import { printable } from "./names";
import { table } from "./table";
import type { DiffAnswer, GroupAnswer } from "./types";
import { formatBytes, formatChange, grouped } from "./units";

const MOST_SHOWN = 200;

/** Make the table of the processes of a group. */
export function processesSection({ processes }: GroupAnswer): HTMLElement {
  const rows = table(processes).rows();
  const size = (bytes: number | null) => (bytes ? formatBytes(bytes) : "-");
  return section("processes", "Processes",
    plainTable(["pid", "private", "COW-shared", "kernel", "per process", "command"], rows.slice(0, MOST_SHOWN).map((one) => [
      String(one.pid ?? "-"), size(one.totals.private_bytes), size(one.totals.shared_with_relatives_bytes),
      size(one.totals.kernel_bytes), size(one.totals.per_process_bytes), printable(one.command.slice(0, 200))]), "Processes"),
    rows.length > MOST_SHOWN ? el("p", {}, `${grouped(rows.length - MOST_SHOWN)} more are in the JSON.`) : null);
}

/** Make the table of the processes that came, went or changed; null where two processes are compared. */
export function memberChangesSection({ members }: DiffAnswer): HTMLElement | null {
  const all = table(members).rows();
  if (!all.length) return null;
  const rows = all.filter((one) => one.status !== "same");
  const size = (bytes: number | null) => (bytes === null ? "?" : formatBytes(bytes));
  return section("processes", "Processes",
    el("p", {}, `${grouped(all.length - rows.length)} are as before.`),
    rows.length ? plainTable(["change", "before", "after", "what", "pid", "command"], rows.slice(0, MOST_SHOWN).map((one) => [
      one.delta_bytes === null ? "?" : formatChange(one.delta_bytes), size(one.old_bytes), size(one.new_bytes), one.status,
      String(one.pid ?? one.old_pid ?? "-"), printable(one.command.slice(0, 200))]), "Processes that changed") : null,
    rows.length > MOST_SHOWN ? el("p", {}, `${grouped(rows.length - MOST_SHOWN)} more are in the JSON.`) : null);
}
