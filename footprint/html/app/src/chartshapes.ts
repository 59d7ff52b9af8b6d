// The layers, lines and marks of a chart over time.

import { BOTTOM, type Chart, HEIGHT, LEFT, type Snapshot, TOP, xOf, yOf } from "./chart";
import { svg } from "./dom";
import { formatBytes } from "./units";

// Nothing is known between two snapshots: the line stays level until the next one.
const steps = (chart: Chart, times: number[], values: number[]) => values.flatMap((value, place) =>
  times.slice(place, place + 2).map((time) => `${xOf(chart, time)},${yOf(chart, value)}`));

/** Draw the layers, one above the other. */
export function layerShapes(chart: Chart): SVGElement[] {
  const { known, layers, snapshots } = chart;
  const times = [...known.map((place) => chart.times[place]), ...(known.length < snapshots.length ? chart.times.slice(-1) : [])];
  let below = known.map(() => 0);
  return layers.map(({ name, size, colour: shown }) => {
    const above = known.map((at, place) => below[place] + size(snapshots[at]));
    const shape = svg("polygon", { fill: shown, points: [...steps(chart, times, above), ...steps(chart, times, below).reverse()].join(" ") });
    shape.append(svg("title", {}, name));
    below = above;
    return shape;
  });
}

/** Draw the span that the reader drags over. */
export function brush({ dragged }: Chart): SVGElement[] {
  if (!dragged) return [];
  const [from, to] = [...dragged].sort((one, other) => one - other);
  return [svg("rect", { x: from, width: to - from, y: TOP, height: HEIGHT - TOP - BOTTOM, class: "brush" })];
}

/** Draw all memory as a line, where the layers are only known at some moments. */
export function outline(chart: Chart): SVGElement[] {
  const { known, snapshots, times } = chart;
  if (known.length === snapshots.length) return [];
  return [svg("polyline", { points: steps(chart, times, snapshots.map((one) => one.used_bytes)).join(" "), class: "outline" })];
}

/** Draw a dot for each snapshot that a click can choose. */
export function dots(chart: Chart): SVGElement[] {
  const { snapshots, withTree, marked } = chart;
  return snapshots.flatMap((one, place) => {
    if (!withTree.has(one.number)) return [];
    const isMarked = marked.includes(one.number);
    return [svg("circle", {
      cx: xOf(chart, chart.times[place]), cy: yOf(chart, one.used_bytes), r: isMarked ? 6 : withTree.size > 40 ? 2 : 3.5,
      class: isMarked ? "dot chosen" : "dot",
    })];
  });
}

/** Draw the peak, and the events whose text has room beside it. */
export function eventLines(chart: Chart): SVGElement[] {
  const { snapshots, times, width } = chart;
  const taken: [from: number, to: number][] = [];
  const textOf = (one: Snapshot) => (one.is_peak ? `peak ${formatBytes(one.used_bytes)}` : one.event);
  const places = snapshots.map((_, place) => place).filter((place) => textOf(snapshots[place]));
  return places.sort((one, other) => Number(snapshots[other].is_peak) - Number(snapshots[one].is_peak)).flatMap((place) => {
    const x = xOf(chart, times[place]);
    const text = textOf(snapshots[place])!;
    const wide = 7 * text.length;
    const from = Math.min(Math.max(x - wide / 2, LEFT), width - wide);
    const isFree = taken.every(([start, end]) => from > end || from + wide < start);
    if (isFree) taken.push([from, from + wide]);
    return [svg("line", { x1: x, x2: x, y1: TOP - 6, y2: HEIGHT - BOTTOM, class: "peak" }),
      ...(isFree ? [svg("text", { x: from + wide / 2, y: TOP - 8, "text-anchor": "middle" }, text)] : [])];
  });
}
