// Places the parts of a whole as boxes in boxes.

import { type Box, type Compare, placed, type Placed } from "./layout";

/** The room of a treemap that the name of a box takes above its parts. */
const HEAD_PX = 17;
/** The gap to the right of a box of a treemap, and below it. */
const GAP_PX = 1;

/** Place a whole as a treemap; returns all parts, each before those in it. */
export function placedInBoxes(whole: Box, compare: Compare, width: number, height: number): Placed[] {
  return placed(whole, compare, width, height, (parent, children) => {
    const room = { ...parent };
    if (parent.depth) room.y0 = Math.min(parent.y1, parent.y0 + HEAD_PX);
    for (let from = 0; from < children.length;) {
      const strip = nextStrip(children, from, room);
      placeStrip(strip, room);
      from += strip.length;
    }
    for (const one of children) {
      one.x1 = Math.max(one.x0, one.x1 - GAP_PX);
      one.y1 = Math.max(one.y0, one.y1 - GAP_PX);
    }
  });
}

// The parts that stand side by side along the shorter edge of the room: as many as make the longest of them less long.
// This is the squarified treemap of Bruls, Huizing and van Wijk.
function nextStrip(children: Placed[], from: number, { x0, y0, x1, y1, value }: Placed): Placed[] {
  const [width, height] = [x1 - x0, y1 - y0];
  const scale = (Math.max(width, height) / Math.min(width, height) || 1) / value;
  let [sum, least, most, worst, past] = [0, Infinity, 0, Infinity, from];
  for (; past < children.length; past += 1) {
    const size = children[past].value;
    [least, most] = [Math.min(least, size), Math.max(most, size)];
    const square = (sum + size) ** 2 * scale;
    const ratio = Math.max(most / square, square / least);
    if (ratio > worst) break;
    worst = ratio;
    sum += size;
  }
  return children.slice(from, Math.max(past, from + 1));
}

// Place parts along the shorter edge of the room, and take their place from it.
function placeStrip(strip: Placed[], room: Placed): void {
  const sum = strip.reduce((all, one) => all + one.value, 0);
  const { x0, y0, x1, y1 } = room;
  const share = room.value ? sum / room.value : 0;
  const isUpright = x1 - x0 >= y1 - y0;
  if (isUpright) room.x0 += share * (x1 - x0);
  else room.y0 += share * (y1 - y0);
  room.value -= sum;
  let before = 0;
  for (const one of strip) {
    const [start, end] = [before / sum, (before += one.value) / sum];
    [one.x0, one.x1] = isUpright ? [x0, room.x0] : [x0 + start * (x1 - x0), x0 + end * (x1 - x0)];
    [one.y0, one.y1] = isUpright ? [y0 + start * (y1 - y0), y0 + end * (y1 - y0)] : [y0, room.y0];
  }
}
