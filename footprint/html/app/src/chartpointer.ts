// The pointer on a chart over time.

import { type Chart, type Snapshot, xOf } from "./chart";
import { formatTime } from "./times";
import { formatBytes } from "./units";

/** The least width of a drag that compares two moments. */
const LEAST_DRAG_PX = 6;

/** Call `ontell` with what is known of the moment at the pointer, and `onchoose` with the numbers of those that a click or a drag chose. */
export function followPointer(
  chart: Chart, canvas: SVGElement, draw: () => void, ontell: (text: string) => void, onchoose: (number: number, before: number | null) => void,
): void {
  const { snapshots, withTree } = chart;
  const placeOf = (event: MouseEvent) => event.clientX - canvas.getBoundingClientRect().left;
  canvas.addEventListener("pointerdown", (event) => {
    chart.dragged = [placeOf(event), placeOf(event)];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    ontell(described(chart, snapshots[nearest(chart, placeOf(event), () => true)]));
    if (!chart.dragged) return;
    chart.dragged[1] = placeOf(event);
    draw();
  });
  // The browser took the drag for a scroll.
  canvas.addEventListener("pointercancel", () => {
    chart.dragged = null;
    draw();
  });
  canvas.addEventListener("pointerup", () => {
    if (!chart.dragged) return;
    const [from, to] = chart.dragged.sort((one, other) => one - other);
    chart.dragged = null;
    const [first, last] = [from, to].map((x) => nearest(chart, x, (one) => withTree.has(one.number)));
    const isDrag = to - from >= LEAST_DRAG_PX && first !== last;
    if (last >= 0) onchoose(snapshots[last].number, isDrag ? snapshots[first].number : null);
    draw();
  });
}

function nearest(chart: Chart, at: number, isWanted: (one: Snapshot) => boolean): number {
  const distance = (place: number) => Math.abs(xOf(chart, chart.times[place]) - at);
  let found = -1;
  chart.snapshots.forEach((one, place) => {
    if (isWanted(one) && (found < 0 || distance(place) < distance(found))) found = place;
  });
  return found;
}

function described({ snapshots, known, layers, unit }: Chart, one: Snapshot): string {
  const parts = (known.includes(snapshots.indexOf(one)) ? layers : []).map(({ name, size }) => `${name} ${formatBytes(size(one))}`).join(", ");
  const time = one.time === null ? "" : ` at ${formatTime(one.time, unit)}`;
  return `${one.what}${time}: ${formatBytes(one.used_bytes)}${parts && ` (${parts})`}${one.is_peak ? ", the peak" : ""}`;
}
