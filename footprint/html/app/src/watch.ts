// What watched processes cost over time: what it consists of, what differs between two moments, and each process as a span.

import { choice } from "./choice";
import { el, fill, section } from "./dom";
import { growthTree } from "./growth";
import type { Page } from "./page";
import { spans } from "./spans";
import { table } from "./table";
import { timeline } from "./timeline";
import { formatTime } from "./times";
import type { WatchAnswer, WatchMoment } from "./types";
import { formatBytes } from "./units";
import { treeView } from "./view";
import { KERNEL, kernelOf, layersOf, snapshotsOf } from "./watchlayers";

/** With fewer moments of owners the processes say more. */
const LEAST_MOMENTS = 8;
const timeOf = (ms: number) => formatTime(ms, "ms");
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
    const chart = timeline(snapshots, "ms", new Set(moments.map((one) => one.ms)), (last, first) => {
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
