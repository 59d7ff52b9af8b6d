// The moments of a watch, and the layers of its chart.

import type { Layer, Snapshot } from "./chart";
import { COLOURS, colour } from "./colours";
import { printable, shortened, shortOwners } from "./names";
import { MOST_LAYERS } from "./spans";
import { table } from "./table";
import type { WatchAnswer, WatchMoment } from "./types";

export const KERNEL = "page tables, kernel stacks";
/** What processes cost besides what their owners hold; of layers by process it is in each. */
export const kernelOf = ({ cost_bytes, layer_bytes, others_bytes }: WatchMoment) => Math.max(0, layer_bytes.reduce((rest, bytes) => rest - bytes, cost_bytes - others_bytes));

/** Return ticks, the moments whose layers are known, and the peak. */
export function snapshotsOf({ watch, samples }: WatchAnswer, moments: WatchMoment[]): Snapshot[] {
  const one = (ms: number, bytes: number, what: string, event?: string) =>
    [ms, { number: ms, time: ms, used_bytes: bytes, live_bytes: bytes, extra_bytes: null, stack_bytes: null, is_peak: false, what, event }] as const;
  const found = new Map<number, Snapshot>(table(samples).rows().map(({ ms, cost_bytes }) => one(ms, cost_bytes, "Tick")));
  for (const { ms, cost_bytes, audit } of moments) found.set(...one(ms, cost_bytes, audit ? "Audit" : "Look", audit ? `audit: ${audit}` : undefined));
  const peak = found.get(watch.peak_ms) ?? one(watch.peak_ms, 0, "Tick")[1];
  found.set(watch.peak_ms, { ...peak, used_bytes: watch.peak_bytes, is_peak: true });
  return [...found.values()].sort((first, other) => first.number - other.number);
}

/** Return the layers of a chart. */
export function layersOf(names: string[], moments: WatchMoment[], hasKernel: boolean): Layer[] {
  const at = new Map(moments.map((one) => [one.ms, one]));
  const short = shortOwners(names);
  const layer = (name: string, shown: string, size: (one: WatchMoment) => number): Layer => ({ name, colour: shown, size: ({ number }) => { const one = at.get(number); return one ? size(one) : 0; } });
  return [
    ...names.slice(0, MOST_LAYERS).map((name, place) => layer(shortened(printable(short(name)), 60), COLOURS[place + 1], (one) => one.layer_bytes[place])),
    layer("others", COLOURS[0], (one) => one.layer_bytes.slice(MOST_LAYERS).reduce((sum, bytes) => sum + bytes, one.others_bytes)),
    ...(hasKernel ? [layer(KERNEL, colour("kernel"), kernelOf)] : [])];
}
