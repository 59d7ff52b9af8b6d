// The shapes of a picture: the outline of a box in pixels, and the box at a point. The boxes of a sunburst have angles and radii.

import type { Shape } from "./boxes";
import type { Placed } from "./layout";

/** What a picture shows, and how large it is. */
export interface Frame {
  boxes: Placed[];
  shape: Shape;
  width: number;
  height: number;
}

/** Trace the outline of a box; return false where it is too small to see. */
export function trace(context: CanvasRenderingContext2D, { shape, width, height }: Frame, { x0, y0, x1, y1, depth }: Placed): boolean {
  context.beginPath();
  if (shape !== "sunburst") {
    if (x1 - x0 < 0.4 || y1 - y0 < 0.4) return false;
    context.rect(x0, y0, x1 - x0, y1 - y0);
    return true;
  }
  if (x1 - x0 < 0.002) return false;
  const [x, y] = [width / 2, height / 2];
  if (depth === 0) context.arc(x, y, y1, 0, 2 * Math.PI);
  else {
    context.arc(x, y, y1, x0 - Math.PI / 2, x1 - Math.PI / 2);
    context.arc(x, y, y0, x1 - Math.PI / 2, x0 - Math.PI / 2, true);
    context.closePath();
  }
  return true;
}

/** Return the length of the shorter edge of a box. */
export function thickness({ shape }: Frame, { x0, y0, x1, y1 }: Placed): number {
  const width = x1 - x0;
  return Math.min(shape === "sunburst" ? (width * (y0 + y1)) / 2 : width, y1 - y0);
}

/** Return the middle of a box; in a treemap that of its head, which no part covers. */
export function middleOf({ shape, width, height }: Frame, { x0, y0, x1, y1 }: Placed): [x: number, y: number] {
  if (shape !== "sunburst") return [(x0 + x1) / 2, shape === "treemap" ? y0 + 8 : (y0 + y1) / 2];
  const angle = (x0 + x1) / 2 - Math.PI / 2;
  const radius = (y0 + y1) / 2;
  return [width / 2 + radius * Math.cos(angle), height / 2 + radius * Math.sin(angle)];
}

/** Return the node of the innermost box at a point, or -1. */
export function boxAt({ boxes, shape, width, height }: Frame, x: number, y: number): number {
  if (shape === "sunburst") {
    const [right, down] = [x - width / 2, y - height / 2];
    x = (Math.atan2(down, right) + Math.PI / 2 + 2 * Math.PI) % (2 * Math.PI);
    y = Math.hypot(right, down);
  }
  for (let place = boxes.length - 1; place >= 0; place -= 1) {
    const { x0, y0, x1, y1, node } = boxes[place];
    if (x >= x0 && x < x1 && y >= y0 && y < y1) return node;
  }
  return -1;
}
