// What a chart over time shows, and where it stands.

import type { SnapshotRow } from "./types";

export const LEFT = 76;
export const RIGHT = 14;
export const TOP = 20;
export const BOTTOM = 26;
export const HEIGHT = 240;

/** A layer of the chart. */
export interface Layer {
  name: string;
  colour: string;
  size: (one: Snapshot) => number;
}

/** A moment with all memory in use then: a snapshot of a profile, or a tick of a watch. */
export type Snapshot = Pick<SnapshotRow, "number" | "time" | "live_bytes" | "extra_bytes" | "stack_bytes" | "is_peak"> & {
  used_bytes: number;
  what: string;
  /** What happened then, where it is marked. */
  event?: string;
};

export interface Chart {
  snapshots: Snapshot[];
  /** The time of each snapshot. */
  times: number[];
  unit: string;
  /** The numbers of the snapshots that have a call tree. */
  withTree: Set<number | string>;
  layers: Layer[];
  /** The places of the snapshots whose layers are known. */
  known: number[];
  /** The largest figure. */
  most: number;
  /** The chosen snapshot, and the one that it is compared with. */
  marked: (number | null)[];
  dragged: [from: number, to: number] | null;
  width: number;
}

/** Return the pixels of a time. */
export function xOf({ times, width }: Chart, time: number): number {
  const first = times[0];
  const last = Math.max(times[times.length - 1], first + 1e-9);
  return LEFT + ((time - first) / (last - first)) * (width - LEFT - RIGHT);
}

/** Return the pixels of a size. */
export function yOf({ most }: Chart, bytes: number): number {
  return TOP + (1 - bytes / most) * (HEIGHT - TOP - BOTTOM);
}
