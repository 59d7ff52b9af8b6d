// The functions that hold most, at each moment with a call tree.

import type { Layer, Snapshot } from "./chart";
import { COLOURS } from "./colours";
import type { Moment } from "./data";
import { nameOf } from "./merged";
import { printable, shortened } from "./names";
import { table } from "./table";

const MOST_LAYERS = 8;

/** Return the layers of a chart: the functions that hold most at some moment, and all others. */
export function functionLayers(moments: Moment[]): Layer[] {
  const byMoment = new Map(moments.map((one) => [one.moment, new Map(table(one.shares).rows().map((row) => [nameOf(row), row] as const))]));
  const most = new Map<string, { name: string; bytes: number }>();
  for (const rows of byMoment.values()) {
    for (const [key, row] of rows) if (row.bytes > (most.get(key)?.bytes ?? 0)) most.set(key, { name: row.name, bytes: row.bytes });
  }
  const top = [...most].sort(([, one], [, other]) => other.bytes - one.bytes).slice(0, MOST_LAYERS);
  const of = (key: string, one: Snapshot) => byMoment.get(one.number)?.get(key)?.bytes ?? 0;
  const layers = top.map(([key, { name }], place) => ({
    name: shortened(printable(name), 60), colour: COLOURS[place + 1], size: (one: Snapshot) => of(key, one),
  }));
  const others = (one: Snapshot) => {
    let sum = 0;
    for (const row of byMoment.get(one.number)?.values() ?? []) sum += row.bytes;
    return sum - top.reduce((all, [key]) => all + of(key, one), 0);
  };
  return [...layers, { name: "other functions", colour: COLOURS[0], size: others }];
}
