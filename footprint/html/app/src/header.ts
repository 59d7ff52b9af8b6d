// The head of the report: what it is about, where and when it was made, and the answer as a file.

import { copy, save } from "./copy";
import type { Made } from "./made";
import { el } from "./dom";
import { written } from "./json";
import { printable } from "./names";
import { runInSlices } from "./scheduler";
import type { Store } from "./store";

/** Write the kernel, the host and the date of an audit, as far as they are known, or when and where its report was written. */
export function placeOf(host: Record<string, string>, made: Made | null): string {
  const kernel = host.kernel ? `Linux ${host.kernel} ${host.machine}` : "";
  return (made?.is_report ? [kernel, `report written on ${made.host}`, made.date] : [made?.host && `on ${made.host}`, kernel, made?.date]).filter(Boolean).join(", ");
}

/** Make the head of a report: it and the file that it saves are named as the window. */
export function header(store: Store, leads: string[], answer: object): HTMLElement {
  const { title } = document;
  const file = title.replace(/[^A-Za-z0-9._-]+/g, "-").slice(0, 80);
  const found = el("span", { class: "found", role: "status" });
  return el("header", {}, el("h1", {}, title.replace(/^footprint: /, "")),
    el("div", { class: "leads" }, ...leads.filter(Boolean).map((one) => el("p", { class: "lead" }, printable(one.slice(0, 2000))))),
    el("div", { class: "tools" }, el("button", { id: "link", onclick: () => void copy(store.link(), found, "The link") }, "Copy link"),
      el("button", { id: "download", onclick: async () => save((await runInSlices(written(answer), () => true))!, `${file}.json`, "application/json") }, "Save as JSON"), found));
}
