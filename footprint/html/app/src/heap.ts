// The report of one heap profile: memory over time, and the figures of its peak and its end.

import type { Amount } from "./amounts";
import { callersSection } from "./callers";
import { chosenMoments } from "./momentchoice";
import type { Snapshot } from "./chart";
import { choice } from "./choice";
import type { HeapData } from "./data";
import { answerSection, el, evidenceMark, factList, section } from "./dom";
import { functionLayers } from "./functionlayers";
import { printable } from "./names";
import type { Page } from "./page";
import { type Profile, profileOf } from "./profile";
import { totalsSection } from "./profiles";
import { timeline } from "./timeline";
import type { Evidence } from "./types";
import { formatBytes, grouped } from "./units";

/** Make the sections on one profile. */
export function profileSections(data: HeapData, file: string, { store }: Page): (HTMLElement | null)[] {
  const profile = profileOf(data, file);
  const { row, snapshots, moments } = profile;
  // Profiles of declared events count units of the program, not bytes.
  const amount = row.counted === "events" ? grouped : formatBytes;
  const callers = callersSection(profile, amount, store);
  const chart = snapshots.length > 1
    ? timeline(snapshots, row.time_unit ?? "", new Set(moments.map((one) => one.moment)), (number, before) => {
      store.set("before", before === null ? profile.named.length > 1 ? "none" : null : String(before));
      store.set("moment", String(number));
    })
    : null;
  const mark = () => {
    const [now, before] = Object.values(chosenMoments(profile, store)).map((one) => one?.moment);
    chart?.mark(typeof now === "number" ? now : null, typeof before === "number" ? before : null);
  };
  for (const name of ["moment", "before"]) store.watch(name, mark);
  mark();
  const layers = choice(store, "layers", "Layers", [["whole", "All memory"], ["functions", "Top functions"]] as const);
  const showLayers = () => chart?.show(layers.value === "functions" ? functionLayers(moments) : null);
  store.watch("layers", showLayers);
  showLayers();
  const treeCount = moments.filter((one) => typeof one.moment === "number").length;
  return [
    answerSection("Memory over time", tiles(profile, amount),
      chart && treeCount > 1 && layers.element,
      chart?.element ?? el("p", {}, "The profile knows no moments."),
      data.left_out[file] ? el("p", { class: "warning" }, data.left_out[file]) : null),
    callers,
    totalsSection(profile, store),
    section("origins", "How these figures were obtained", factList([
      ["Profile", printable(file)], ["Format", row.format], ["Counted", row.counted],
      ["Command", printable(row.command ?? "")], ["Says of itself", printable(row.description ?? "")],
      ["Snapshots", snapshots.length ? `${grouped(snapshots.length)}, ${grouped(treeCount)} with a call tree` : ""],
    ])),
  ];
}

// The figures of the peak and of the end, or of the whole run where the profile has no snapshots.
function tiles({ row, snapshots }: Profile, amount: Amount): HTMLElement {
  const peak = snapshots.find((one) => one.is_peak)
    ?? snapshots.reduce<Snapshot | null>((most, one) => (!most || one.used_bytes > most.used_bytes ? one : most), null);
  const found: [name: string, figure: string, evidence: Evidence | null][] = [];
  if (peak) {
    found.push(["At its peak", formatBytes(peak.used_bytes), row.evidence], ["asked for", formatBytes(peak.live_bytes), null]);
    if (peak.extra_bytes !== null) found.push(["the allocator's own", formatBytes(peak.extra_bytes), null]);
    if (peak.stack_bytes) found.push(["stacks", formatBytes(peak.stack_bytes), null]);
    const last = snapshots[snapshots.length - 1];
    if (last !== peak) found.push(["at the end", formatBytes(last.used_bytes), null]);
  } else if (row.tree_bytes !== null) {
    found.push([row.tally ?? "counted", amount(row.tree_bytes), row.evidence]);
  }
  return el("dl", { class: "tiles" }, ...found.map(([name, figure, evidence], place) =>
    el("div", { class: `tile${place ? "" : " whole"}` }, el("dt", {}, name), el("dd", {}, figure),
      evidence && el("dd", { class: "how" }, evidenceMark(evidence)))));
}
