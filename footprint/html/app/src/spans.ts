// Watched processes as spans of time.

import { COLOURS } from "./colours";
import { el } from "./dom";
import { shortened } from "./names";
import { table } from "./table";
import type { Snapshot } from "./chart";
import { formatTime } from "./times";
import type { WatchAnswer, WatchProcess } from "./types";
import { formatBytes, grouped } from "./units";

/** So many layers have a colour, and so has the span of the same process. */
export const MOST_LAYERS = 8;
const MOST_SPANS = 20;

/** Draw each process from its start to its end, those with the largest peaks first. */
export function spans({ watch, processes }: WatchAnswer, snapshots: Snapshot[], names: string[]): HTMLElement {
  const rows = table(processes).rows();
  const [first, last] = [snapshots[0].number, snapshots.at(-1)!.number];
  const endOf = ({ ended_ms }: WatchProcess) => ended_ms ?? last;
  const part = (ms: number) => Math.min(1, Math.max(0, (ms - first) / (last - first)));
  const span = (text: string, from: number, to: number, peak: string) => {
    const bar = el("i");
    Object.assign(bar.style, { marginLeft: `${100 * part(from)}%`, width: `${100 * (part(to) - part(from))}%`, background: COLOURS[names.slice(0, MOST_LAYERS).indexOf(text) + 1] });
    return el("li", {}, `${shortened(text, 80)}: ${peak}, ${formatTime(from, "ms")} to ${formatTime(to, "ms")}`, bar);
  };
  const rest = rows.slice(MOST_SPANS);
  return el("ul", { class: "spans", "aria-label": "Processes, those with the largest peaks first" },
    ...rows.slice(0, MOST_SPANS).map((one) => span(`${one.pid} ${one.command}`, one.came_ms, endOf(one), one.peak_resident_bytes === null ? "peak not known" : `peak resident ${formatBytes(one.peak_resident_bytes)}`)),
    rest.length && span(`${grouped(watch.process_count - MOST_SPANS)} others`, Math.min(...rest.map((one) => one.came_ms)), Math.max(...rest.map(endOf)), `at most ${formatBytes(Math.max(...rest.map((one) => one.peak_resident_bytes ?? 0)))} each`));
}
