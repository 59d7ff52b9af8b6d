// The head of the report: what it is about, and the answer as a file.

import type { LedgerAnswer } from "./data";
import { written } from "./data";
import { el, save } from "./dom";
import { printable } from "./names";

/** Return the name of what an audit is about. */
export function nameOf({ target }: LedgerAnswer): string {
  const what = target.pid === null ? printable(target.name) : `process ${target.pid}`;
  return what.length > 120 ? `${what.slice(0, 120)}…` : what;
}

/** Make the head of a report; the file that it saves has the last part of `name`. */
export function header(title: string, lead: string, answer: object, name = "report"): HTMLElement {
  const last = name.split(/[\s/]/).filter(Boolean).pop() ?? "report";
  const file = `footprint-${last}`.replace(/[^A-Za-z0-9._-]/g, "_").slice(0, 80);
  return el("header", {}, el("h1", {}, title), lead ? el("p", { class: "lead" }, printable(lead.slice(0, 2000))) : null,
    el("button", { type: "button", id: "download", onclick: () => save(written(answer), `${file}.json`, "application/json") }, "Save as JSON"));
}
