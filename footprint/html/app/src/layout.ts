// Places the parts of a whole: in rows (icicle) or rings (sunburst), as wide as their shares.

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

/** Orders the parts of a whole. */
export type Compare = (one: Placed, other: Placed) => number;

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

/** Place a whole by a function that places the parts of each part in it; returns all parts, each before those in it. */
export function placed(
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
