// The head of the report: what it is about, where and when it was made, and the answer as a file.

import { type LedgerAnswer, type Made, table, written } from "./data";
import { el, save } from "./dom";
import { copy } from "./grid";
import { printable, shortened } from "./names";
import { runInSlices } from "./scheduler";
import type { Store } from "./store";
import type { GroupAnswer } from "./types";

/** Return the name of what an audit is about: the program, and the process where it is one. */
export function nameOf({ target }: LedgerAnswer): string {
  const program = target.command.split(" ")[0].replace(/:$/, "");
  const name = target.pid === null || !program ? target.name : program;
  const last = printable(name.slice(name.lastIndexOf("/") + 1));
  const short = last.length > 120 ? `${last.slice(0, 120)}…` : last;
  return target.pid === null ? short : `${short}, process ${target.pid}`;
}

/** Return the name of a group: its program and the number of its processes. */
export function groupName({ processes }: GroupAnswer): string {
  const rows = table(processes);
  const program = (rows.column("command")[0] ?? "").split(" ")[0].replace(/:$/, "");
  const last = printable(program.slice(program.lastIndexOf("/") + 1));
  return `${last ? `${shortened(last, 120)}, ` : ""}${rows.size} ${rows.size === 1 ? "process" : "processes"}`;
}

/** Write the kernel, the host and the date of an audit, as far as they are known, or when and where its report was written. */
export function placeOf(host: Record<string, string>, made: Made | null): string {
  const kernel = host.kernel ? `Linux ${host.kernel} ${host.machine}` : "";
  return (made?.is_report ? [kernel, `report written on ${made.host}`, made.date] : [made?.host && `on ${made.host}`, kernel, made?.date]).filter(Boolean).join(", ");
}

/** Make the head of a report; the file that it saves has the last part of `name`. */
export function header(store: Store, title: string, leads: string[], answer: object, name = "report"): HTMLElement {
  const last = name.split(/[\s/]/).filter(Boolean).pop() ?? "report";
  const file = `footprint-${last}`.replace(/[^A-Za-z0-9._-]/g, "_").slice(0, 80);
  const found = el("span", { class: "found", role: "status" });
  return el("header", {}, el("h1", {}, title),
    el("div", { class: "leads" }, ...leads.filter(Boolean).map((one) => el("p", { class: "lead" }, printable(one.slice(0, 2000))))),
    el("div", { class: "tools" }, el("button", { id: "link", onclick: () => void copy(store.link(), found, "The link") }, "Copy link"),
      el("button", { id: "download", onclick: async () => save((await runInSlices(written(answer), () => true))!, `${file}.json`, "application/json") }, "Save as JSON"), found));
}
