// The axes of a chart over time.

import { type Chart, HEIGHT, LEFT, RIGHT, xOf, yOf } from "./chart";
import { svg } from "./dom";
import { formatTime, ticks } from "./times";
import { formatBytes } from "./units";

/** Draw lines at round sizes, and the texts of both axes. */
export function axes(chart: Chart): SVGElement[] {
  return [...sizeAxis(chart), ...timeAxis(chart)];
}

function sizeAxis(chart: Chart): SVGElement[] {
  // Round numbers of the unit that the largest figure has.
  const unit = 1024 ** Math.floor(Math.log2(chart.most) / 10);
  return ticks(0, chart.most / unit, 4).flatMap((step) => {
    const y = yOf(chart, step * unit);
    return [svg("line", { x1: LEFT, x2: chart.width - RIGHT, y1: y, y2: y, class: "rule" }),
      svg("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end" }, formatBytes(step * unit))];
  });
}

function timeAxis(chart: Chart): SVGElement[] {
  const { times, unit, width } = chart;
  const [first, last] = [times[0], times[times.length - 1]];
  const text = (x: number, anchor: string, words: string) => svg("text", { x, y: HEIGHT - 6, "text-anchor": anchor }, words);
  // Round numbers of seconds, minutes or hours.
  const seconds = (last - first) / (unit === "ms" ? 1000 : 1);
  const part = (unit !== "ms" && unit !== "s") || seconds < 120 ? 1 : (seconds < 7200 ? 60 : 3600) * (unit === "ms" ? 1000 : 1);
  const between = ticks(first / part, last / part, Math.floor(width / 160)).slice(1, -1).flatMap((one) => {
    const x = xOf(chart, one * part);
    return x < LEFT + 90 || x > width - 110 ? []
      : [text(x, "middle", formatTime(one * part, unit).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " "))];
  });
  return [...between, text(xOf(chart, first), "start", formatTime(first, unit)), text(xOf(chart, last), "end", formatTime(last, unit))];
}
