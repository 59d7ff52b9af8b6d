// Where the cells of the pages of an object stand: rows of cells for each part, below a line on it.

import type { PageMap } from "./pagemap";

const HEAD_PX = 20;
const GAP_PX = 6;

/** A page: the number of its part, and its number within the part. */
export type Cell = [part: number, page: number];

export interface CellLayout {
  /** The number of pages of each part. */
  counts: number[];
  cellPx: number;
  columns: number;
  /** Where the cells of each part begin, in pixels from the top. */
  tops: number[];
  height: number;
}

/** Place the cells of an object. */
export function laidOut({ parts }: PageMap, width: number): CellLayout {
  const counts = parts.map((part) => part.states.length);
  const count = counts.reduce((all, one) => all + one, 0);
  const cellPx = count <= 4000 ? 12 : count <= 20000 ? 8 : count <= 100000 ? 5 : 3;
  const columns = Math.max(1, Math.floor(width / cellPx));
  let height = 0;
  const tops = counts.map((one) => {
    const top = height + HEAD_PX;
    height = top + Math.ceil(one / columns) * cellPx + GAP_PX;
    return top;
  });
  return { counts, cellPx, columns, tops, height };
}

/** Return the upper left corner of a cell. */
export function cornerOf({ cellPx, columns, tops }: CellLayout, [part, page]: Cell): [x: number, y: number] {
  return [(page % columns) * cellPx, tops[part] + Math.floor(page / columns) * cellPx];
}

/** Return the cell at a point; null where there is none. */
export function cellAt({ counts, cellPx, columns, tops }: CellLayout, x: number, y: number): Cell | null {
  for (const [place, count] of counts.entries()) {
    const row = Math.floor((y - tops[place]) / cellPx);
    const column = Math.floor(x / cellPx);
    const page = row * columns + column;
    if (row >= 0 && column < columns && page < count) return [place, page];
  }
  return null;
}

/** Return the cell that an arrow key leads to; null for another key. */
export function cellBeside({ counts, columns }: CellLayout, [place, page]: Cell, key: string): Cell | null {
  const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
  if (!(key in steps)) return null;
  page += steps[key];
  while (page < 0 && place > 0) page += counts[(place -= 1)];
  while (page >= counts[place] && place + 1 < counts.length) page -= counts[place++];
  return [place, Math.min(Math.max(page, 0), Math.max(0, counts[place] - 1))];
}
