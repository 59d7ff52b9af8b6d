// Places the parts of a whole: in rows (icicle) or rings (sunburst), as wide as their shares, or as boxes in boxes (treemap).

/** A part to be placed, with the parts in it. */
export interface Box {
  /** The node; negative where several stand together. */
  node: number;
  /** What it takes beside its children. */
  own: number;
  /** How many stand together. */
  count: number;
  children?: Box[];
}

/** A part with its place: pixels, or for rings its angles and radii. */
export interface Placed extends Box {
  children?: Placed[];
  value: number;
  depth: number;
  x0: number;
  y0: number;
  x1: number;
  y1: number;
}

type Compare = (one: Placed, other: Placed) => number;

/** The room of a treemap that the name of a box takes above its parts. */
const HEAD_PX = 17;
/** The gap to the right of a box of a treemap, and below it. */
const GAP_PX = 1;

/** Return the number of levels below a box. */
export function levels({ children }: Box): number {
  return children?.length ? 1 + Math.max(...children.map(levels)) : 0;
}

/** Place a whole in rows or rings of the same height, one for each level; returns all parts, each before those in it. */
export function placedInRows(whole: Box, compare: Compare, width: number, row: number): Placed[] {
  return placed(whole, compare, width, row, (parent, children) => {
    let x = parent.x0;
    for (const one of children) {
      [one.x0, one.x1] = [x, (x += (one.value / parent.value) * (parent.x1 - parent.x0))];
      [one.y0, one.y1] = [parent.y1, parent.y1 + row];
    }
  });
}

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

function placed(
  whole: Box, compare: Compare, x1: number, y1: number, place: (parent: Placed, children: Placed[]) => void,
): Placed[] {
  const found = [{ ...sized(whole, 0, compare), x1, y1 }];
  // Those that are added are placed in their turn.
  for (const one of found) {
    if (!one.children) continue;
    place(one, one.children);
    found.push(...one.children);
  }
  return found;
}

// Add up what each part takes, the first ones by `compare` first.
function sized(box: Box, depth: number, compare: Compare): Placed {
  const children = box.children?.map((one) => sized(one, depth + 1, compare)).sort(compare);
  const value = box.own + (children?.reduce((all, one) => all + one.value, 0) ?? 0);
  return { ...box, children, value, depth, x0: 0, y0: 0, x1: 0, y1: 0 };
}
