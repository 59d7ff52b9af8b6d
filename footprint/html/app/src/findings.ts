// Findings with what they save, notes, and how the figures were obtained.

import type { Count } from "./answer";
import { table, type Table } from "./data";
import { el, evidenceMark, fill, plainTable } from "./dom";
import { isVirtual } from "./ledger";
import { printable } from "./names";
import { formatBytes, grouped } from "./units";

const MOST_SHOWN = 100;
const FEW = 6;
const SAVES_NOTHING = "saves nothing by itself";

/** Make a section of findings; empty ones say why. Of what saves nothing, many wait until they are asked for. */
export function findingsSection(title: string, findings: Table, count: Count, ifNone: string): HTMLElement {
  const rows = findings.rows();
  const [saving, others] = [rows.filter((one) => one.saving_bytes), rows.filter((one) => !one.saving_bytes)];
  const also = saving.length ? " more" : "";
  return el("section", { class: "section" }, el("h2", {}, title),
    saving.length ? cards(saving, count) : null,
    others.length
      ? el("details", { open: others.length <= FEW },
        el("summary", {}, others.length === 1 ? `1${also} ${SAVES_NOTHING}` : `${grouped(others.length)}${also} save nothing by themselves`),
        cards(others, count))
      : null,
    rows.length ? null : el("p", {}, ifNone));
}

function cards(rows: any[], count: Count): HTMLElement {
  const list = el("ol", { class: "findings" });
  let most = MOST_SHOWN;
  const draw = (size: bigint) => {
    fill(list, ...rows.slice(0, most).map((one) => card(one, size)),
      rows.length > most && el("li", {}, el("button", { type: "button", onclick: () => {
        most = rows.length;
        draw(count.value);
      } }, `Show all ${grouped(rows.length)}`)));
  };
  count.watch(draw);
  return list;
}

function card(one: any, count: bigint): HTMLElement {
  const unit = one.saving_per === "thread" ? "thread" : "process";
  const total = BigInt(one.saving_bytes) * count;
  const saves = one.confidence === "blocked" ? "would save" : "saves";
  const place = one.location;
  return el("li", { class: "finding" },
    el("h3", {}, `${one.rule}: `, el("span", { class: "subject" }, printable(one.subject))),
    el("p", {},
      one.saving_bytes
        ? el("strong", {}, `${saves} ${formatBytes(one.saving_bytes)} a ${unit}`)
        : el("strong", {}, SAVES_NOTHING),
      one.saving_bytes && count > 1n
        ? el("span", { class: "at-count", "data-bytes": total.toString() }, `, ${formatBytes(total)} in ${grouped(count)}`)
        : null,
      " ", el("span", { class: `evidence confidence-${one.confidence}` }, one.confidence)),
    el("p", {}, printable(one.message), "."),
    el("dl", {},
      ...(place ? [el("dt", {}, "Declared"), el("dd", {}, el("code", {}, printable(`${place.file}${place.line === null ? "" : `:${place.line}`}`)))] : []),
      ...(one.object ? [el("dt", {}, "Object"), el("dd", {}, el("code", {}, printable(one.object)))] : []),
      ...(one.private_bytes === null ? [] : [el("dt", {}, "Private now"), el("dd", {}, formatBytes(one.private_bytes))]),
      ...(one.reasons.length ? [el("dt", {}, `Why ${one.confidence}`), el("dd", {}, printable(one.reasons.join("; ")))] : []),
      el("dt", {}, "Remedy"), el("dd", {}, printable(one.remedy)),
      ...(one.leaves.length > 1 ? [el("dt", {}, "Leaves with it"), el("dd", {}, printable(one.leaves.join(", ")))] : [])));
}

/** Make the list of notes. */
export function notesSection(notes: Table, warning: string): HTMLElement {
  const rows = notes.rows();
  return el("section", { class: "section", id: "notes" }, el("h2", {}, "Notes"),
    warning ? el("p", { class: "warning" }, warning) : null,
    rows.length || warning
      ? el("ul", {}, ...rows.map((note) => el("li", {}, el("strong", {}, note.slug), ` ${printable(note.subject)}: ${printable(note.detail)}`)))
      : el("p", {}, "Nothing was odd."));
}

const MEANINGS = [
  ["measured", "a counter or page bit of the kernel, as it stands"],
  ["derived", "exact arithmetic on measured figures"],
  ["predicted", "from ELF files, before running"],
  ["estimated", "a model with constants, or an assumption that is usually right"],
  ["virtual", "address space only: an upper bound"],
];

/** Say what was read, and how sure the figures are. */
export function originsSection(audit: any, title = "How these figures were obtained"): HTMLElement {
  const { target, host, tool } = audit;
  const ledger = table(audit.ledger);
  // Of address space only the size of what is writable is told.
  const virtual = isVirtual(audit);
  const isWritable = ledger.column<boolean>("is_writable");
  const bytes = virtual ? ledger.column<number>("mapped_bytes").map((size, row) => (isWritable[row] ? size : 0))
    : ledger.column<number | null>("bytes");
  const evidence = ledger.column<string>("evidence");
  const byEvidence = new Map<string, [number, number]>();
  evidence.forEach((one, row) => {
    const [rows, sum] = byEvidence.get(one) ?? [0, 0];
    byEvidence.set(one, [rows + 1, sum + (bytes[row] ?? 0)]);
  });
  const facts: [string, string][] = [
    ["Target", printable(target.name)],
    ["Process", target.pid === null ? "" : String(target.pid)],
    ["Command", printable(target.command)],
    ["Read from", target.source === "prediction" ? "its files; nothing was run" : `${target.source}${target.is_live ? ", live" : ""}`],
    ["Mappings", grouped(target.mapping_count)],
    ["Page", formatBytes(target.page_bytes)],
    ["Host", Object.values(host).map((one) => printable(String(one))).join(" ")],
    ["Written by", `${tool.name} ${tool.version}`],
  ];
  const debug = table(audit.debug_files).rows();
  return el("section", { class: "section" }, el("h2", {}, title),
    el("dl", { class: "facts" }, ...facts.filter(([, text]) => text).flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, text)])),
    plainTable(["known", "what it means", "rows", virtual ? "writable in them" : "bytes in them"], MEANINGS.filter(([name]) => byEvidence.has(name)).map(([name, meaning]) => [
      evidenceMark(name), meaning, grouped(byEvidence.get(name)![0]), formatBytes(byEvidence.get(name)![1])]), `${title}: evidence`),
    debug.length ? el("p", {}, `The names of ${debug.length} stripped files are from their debug files.`) : null);
}
