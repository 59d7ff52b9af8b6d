// Writes names and figures into the boxes of a picture, where they have room.

import type { Placed } from "./layout";
import type { Frame } from "./shapes";

const LINE_PX = 15;
const ELLIPSIS = "…";

/** Write the name of a box, and in an icicle or a treemap its figure. */
export function label(context: CanvasRenderingContext2D, frame: Frame, box: Placed, name: string, figure: string): void {
  context.fillStyle = "#111";
  if (frame.shape === "sunburst") labelRing(context, frame, box, name);
  else labelBox(context, frame.shape === "treemap", box, name, figure);
}

function labelRing(context: CanvasRenderingContext2D, { width, height }: Frame, { x0, x1, y0, y1, depth }: Placed, name: string): void {
  const radius = y1 - y0;
  context.save();
  context.translate(width / 2, height / 2);
  if (depth === 0) {
    const text = fitted(context, name, 2 * radius - 8);
    context.fillText(text, -context.measureText(text).width / 2, 0);
  } else if (((x1 - x0) * (y0 + y1)) / 2 > 13 && radius > 30) {
    const angle = (x0 + x1) / 2 - Math.PI / 2;
    const isLeft = Math.cos(angle) < 0;
    context.rotate(isLeft ? angle + Math.PI : angle);
    const text = fitted(context, name, radius - 8);
    context.fillText(text, isLeft ? -y0 - 4 - context.measureText(text).width : y0 + 4, 0);
  }
  context.restore();
}

function labelBox(context: CanvasRenderingContext2D, isTreemap: boolean, box: Placed, name: string, figure: string): void {
  const room = box.x1 - box.x0 - 8;
  const height = isTreemap && box.children ? 16 : box.y1 - box.y0;
  if (room < 20 || height < 13) return;
  const y = isTreemap ? box.y0 + 9 : (box.y0 + box.y1) / 2;
  // The figure stands below the name or, where there is no room, behind it.
  const isBelow = isTreemap ? !box.children && height >= 2 * LINE_PX + 4 : height >= 2 * LINE_PX + 2;
  const both = `${name}  ${figure}`;
  const nameY = isBelow && !isTreemap ? y - LINE_PX / 2 : y;
  context.fillText(!isBelow && context.measureText(both).width <= room ? both : fitted(context, name, room), box.x0 + 4, nameY);
  if (isBelow && context.measureText(figure).width <= room) context.fillText(figure, box.x0 + 4, nameY + LINE_PX);
}

function fitted(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (room < 12) return "";
  const most = Math.floor(room / 3);
  let found = text.length > most ? text.slice(0, most) : text;
  if (found === text && context.measureText(text).width <= room) return text;
  const mean = context.measureText(found).width / Math.max(1, found.length);
  found = found.slice(0, Math.max(1, Math.floor(room / mean)));
  while (found.length > 1 && context.measureText(found + ELLIPSIS).width > room) found = found.slice(0, -1);
  return found.length > 1 ? found + ELLIPSIS : "";
}
