// Times as texts, and round numbers for the ticks of an axis.

import { printable } from "./names";
import { formatBytes } from "./units";

const SI: [number, string][] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

/** Write a time with its unit, as in footprint/formats/graph.py. */
export function formatTime(time: number, unit: string): string {
  if (unit === "B") return formatBytes(Math.round(time));
  let [value, name] = [time, unit];
  if (unit === "ms" && time >= 1000) [value, name] = [time / 1000, "s"];
  if (name === "s" && value >= 60) {
    const [hours, minutes, seconds] = [Math.floor(value / 3600), Math.floor((value % 3600) / 60), Math.floor(value % 60)];
    const parts = hours ? [[hours, "h"], [minutes, "min"]] as const : [[minutes, "min"], [seconds, "s"]] as const;
    return parts.filter(([count], place) => !place || count).map(([count, word]) => `${count} ${word}`).join(" ");
  }
  // Massif writes i for instructions, DHAT instrs: people do not know either.
  if (name === "i" || name === "instrs") name = "instructions";
  if (name && name !== "s" && name !== "ms") {
    const found = SI.find(([factor]) => value >= factor);
    if (found) return `${(value / found[0]).toFixed(2)} ${found[1]}${name === "instructions" ? " " : ""}${printable(name)}`;
  }
  return `${value % 1 ? value.toFixed(2) : value.toFixed(0)} ${printable(name)}`.trimEnd();
}

/** Return about as many round numbers between two: multiples of 1, 2 or 5 times a power of ten. */
export function ticks(from: number, to: number, count: number): number[] {
  const least = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * ([1, 2, 5].find((one) => one * power >= least * 0.71) ?? 10);
  const found: number[] = [];
  for (let place = Math.ceil(from / step); place * step <= to; place += 1) found.push(Number((place * step).toPrecision(12)));
  return found;
}
