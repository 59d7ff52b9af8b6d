// What watched processes cost over time: what it consists of, what differs between two moments, and each process as a span.

import { choice } from "./choice";
import { COLOURS, colour } from "./colours";
import { table } from "./data";
import { el, fill, section } from "./dom";
import { growthTree } from "./growth";
import { printable, shortened, shortOwners } from "./names";
import type { Page } from "./page";
import { MOST_LAYERS, spans } from "./spans";
import { formatTime, type Layer, type Snapshot, Timeline } from "./timeline";
import type { WatchAnswer, WatchMoment } from "./types";
import { formatBytes } from "./units";
import { treeView } from "./view";

/** With fewer moments of owners the processes say more. */
const LEAST_MOMENTS = 8;
const timeOf = (ms: number) => formatTime(ms, "ms");
const KERNEL = "page tables, kernel stacks";
/** What processes cost besides what their owners hold; of layers by process it is in each. */
const kernelOf = ({ cost_bytes, layer_bytes, others_bytes }: WatchMoment) => Math.max(0, layer_bytes.reduce((rest, bytes) => rest - bytes, cost_bytes - others_bytes));
const nameOf = ({ ms, audit }: WatchMoment) => `${timeOf(ms)}${audit ? `, audit: ${audit}` : ""}`;

/** Make the section on a watch. */
export function watchSection(answer: WatchAnswer, { store }: Page): HTMLElement {
  const made = section("time", "Memory over time");
  const kinds = ([["owner_layers", "By owner"], ["process_layers", "By process"]] as const).filter(([key]) => answer[key]);
  if (kinds.length > 1 && table(answer.owner_layers!.moments).size < LEAST_MOMENTS) kinds.reverse();
  const by = choice(store, "layers", "Layers", kinds.length ? kinds : [["owner_layers", ""]]);
  store.remake(["layers"], () => {
    const found = answer[by.value];
    const moments = table(found?.moments).rows();
    const snapshots = snapshotsOf(answer, moments);
    const chart = new Timeline(snapshots, "ms", new Set(moments.map((one) => one.ms)), (last, first) => {
      if (first !== null) store.set("before", String(first));
      store.set("moment", String(last));
    });
    const hasKernel = by.value === "owner_layers";
    chart.show(found ? layersOf(found.names, moments, hasKernel) : []);
    const compared = el("div");
    store.remake(["moment", "before"], () => {
      if (!moments.length) return;
      const at = (name: string, other: WatchMoment) => moments.find(({ ms }) => String(ms) === store.get(name)) ?? other;
      const [before, now] = [at("before", moments[0]), at("moment", moments.reduce((most, one) => (one.cost_bytes >= most.cost_bytes ? one : most)))];
      chart.mark(now.ms, before.ms);
      const selects = ([["before", "From", before], ["moment", "To", now]] as const).flatMap(([id, label, chosen]) => {
        const box = el("select", { id, onchange: () => store.set(id, box.value) }, ...moments.map((one) => el("option", { value: one.ms, selected: one === chosen }, nameOf(one))));
        return [el("label", { for: id }, label), box];
      });
      const rows = (one: WatchMoment) => [...one.layer_bytes, one.others_bytes, ...(hasKernel ? [kernelOf(one)] : [])].map((bytes, place) =>
        ({ owner: "", symbol: null, name: [...found!.names, "others", KERNEL][place], bytes }));
      const { tree, legend } = growthTree(rows(before), rows(now), formatBytes);
      fill(compared, el("h3", {}, `What differs between ${nameOf(before)} and ${nameOf(now)}`),
        el("div", { class: "tools" }, ...selects), tree.size > 1 ? treeView(store, "layers", tree, "What differs", legend, false) : el("p", { class: "empty" }, "Nothing."));
    });
    fill(made, el("h2", {}, "Memory over time"), kinds.length > 1 && by.element, chart.element, spans(answer, snapshots, found?.names ?? []), compared);
  });
  return made;
}

// Ticks, the moments whose layers are known, and the peak.
function snapshotsOf({ watch, samples }: WatchAnswer, moments: WatchMoment[]): Snapshot[] {
  const one = (ms: number, bytes: number, what: string, event?: string) =>
    [ms, { number: ms, time: ms, used_bytes: bytes, live_bytes: bytes, extra_bytes: null, stack_bytes: null, is_peak: false, what, event }] as const;
  const found = new Map<number, Snapshot>(table(samples).rows().map(({ ms, cost_bytes }) => one(ms, cost_bytes, "Tick")));
  for (const { ms, cost_bytes, audit } of moments) found.set(...one(ms, cost_bytes, audit ? "Audit" : "Look", audit ? `audit: ${audit}` : undefined));
  const peak = found.get(watch.peak_ms) ?? one(watch.peak_ms, 0, "Tick")[1];
  found.set(watch.peak_ms, { ...peak, used_bytes: watch.peak_bytes, is_peak: true });
  return [...found.values()].sort((first, other) => first.number - other.number);
}

function layersOf(names: string[], moments: WatchMoment[], hasKernel: boolean): Layer[] {
  const at = new Map(moments.map((one) => [one.ms, one]));
  const short = shortOwners(names);
  const layer = (name: string, shown: string, size: (one: WatchMoment) => number): Layer => ({ name, colour: shown, size: ({ number }) => { const one = at.get(number); return one ? size(one) : 0; } });
  return [
    ...names.slice(0, MOST_LAYERS).map((name, place) => layer(shortened(printable(short(name)), 60), COLOURS[place + 1], (one) => one.layer_bytes[place])),
    layer("others", COLOURS[0], (one) => one.layer_bytes.slice(MOST_LAYERS).reduce((sum, bytes) => sum + bytes, one.others_bytes)),
    ...(hasKernel ? [layer(KERNEL, colour("kernel"), kernelOf)] : [])];
}
