// A tree drawn on a canvas as icicle, treemap or sunburst.

import { COLOURS } from "./colours";
import { el } from "./dom";
import { boxesOf, foldedChildren, OTHERS, REST, type Shape } from "./boxes";
import type { Placed } from "./layout";
import type { Tree } from "./tree";
import { percent } from "./units";

const LINE_PX = 15;

export class Picture {
  readonly element: HTMLCanvasElement;
  shape: Shape = "icicle";
  #zoom = 0;
  #boxes: Placed[] = [];
  #base: HTMLCanvasElement | null = null;
  #width = 0;
  #height = 0;
  #hovered = -1;
  #selected = -1;
  isRest = false;
  #found: Uint8Array | null = null;

  constructor(
    readonly tree: Tree,
    private readonly label: string,
    private readonly events: { onhover(node: number, event?: MouseEvent): void; onclick(node: number): void },
  ) {
    this.element = el("canvas", {
      role: "img", class: "picture", "data-shape": "icicle",
      onmousemove: (event: MouseEvent) => this.#point(event),
      onmouseleave: () => this.events.onhover(-1),
      onclick: (event: MouseEvent) => {
        const node = this.#nodeAt(event);
        if (node >= 0 || node === OTHERS) this.events.onclick(node);
      },
    });
    new ResizeObserver(() => this.#lay()).observe(this.element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#lay());
  }

  get root(): number {
    return this.#zoom;
  }

  /** Show a node and the nodes below it; with `isRest` only those that are shown together otherwise. */
  zoomTo(node: number, isRest = false): void {
    this.#zoom = node;
    this.isRest = isRest;
    this.#lay();
  }

  /** Draw the nodes without a mark pale; null for none. */
  highlight(found: Uint8Array | null): void {
    this.#found = found;
    this.#draw();
  }

  /** Return the children of the shown node that are shown together, if they are. */
  others(): number[] {
    return foldedChildren(this.tree, this.#zoom);
  }

  setShape(shape: Shape): void {
    this.shape = shape;
    this.element.dataset.shape = shape;
    this.#lay();
  }

  /** Mark the node below the pointer, and the selected node. */
  mark(hovered: number, selected = this.#selected): void {
    if (hovered === this.#hovered && selected === this.#selected) return;
    this.#hovered = hovered;
    this.#selected = selected;
    this.#paint();
  }

  /** Return the middle of a node in pixels of the canvas; null where it is not drawn. For tests. */
  placeOf(node: number): [number, number] | null {
    const box = this.#boxes.find((one) => one.node === node);
    if (!box) return null;
    if (this.shape !== "sunburst") return [(box.x0 + box.x1) / 2, this.shape === "treemap" ? box.y0 + 8 : (box.y0 + box.y1) / 2];
    const angle = (box.x0 + box.x1) / 2 - Math.PI / 2;
    const radius = (box.y0 + box.y1) / 2;
    return [this.#width / 2 + radius * Math.cos(angle), this.#height / 2 + radius * Math.sin(angle)];
  }

  #lay(): void {
    this.#width = this.element.clientWidth;
    this.#height = this.element.clientHeight;
    if (!this.#width || !this.#height) return;
    const { tree } = this;
    this.#boxes = boxesOf(tree, this.#zoom, this.isRest, this.shape, this.#width, this.#height);
    const shown = this.#boxes.filter((one) => one.node >= 0).length;
    this.element.setAttribute("aria-label",
      `${this.label}: ${this.shape} of ${tree.names[this.#zoom]}, ${tree.amount(tree.areas[this.#zoom])}, ${shown} parts. The table says the same.`);
    this.#draw();
  }

  #draw(): void {
    const ratio = devicePixelRatio || 1;
    const base = (this.#base ??= document.createElement("canvas"));
    for (const canvas of [base, this.element]) {
      canvas.width = Math.round(this.#width * ratio);
      canvas.height = Math.round(this.#height * ratio);
    }
    const context = base.getContext("2d")!;
    context.scale(ratio, ratio);
    const style = getComputedStyle(this.element);
    const ground = style.getPropertyValue("--ground").trim() || "#fff";
    context.font = `12px ${style.fontFamily}`;
    context.textBaseline = "middle";
    const hatch = hatching(context);
    if (!this.#boxes.length) {
      context.fillStyle = style.color;
      context.fillText("Nothing here takes memory.", 12, 24);
    }
    for (const box of this.#boxes) {
      if (!this.#trace(context, box)) continue;
      const { node } = box;
      context.globalAlpha = this.#isPale(node) ? 0.25 : 1;
      context.fillStyle = node < 0 ? COLOURS[0] : box.depth === 0 ? COLOURS[0] : COLOURS[this.tree.colours[node]];
      context.fill();
      if (node >= 0 && this.tree.hatched[node] && !(this.shape === "treemap" && box.children)) {
        context.fillStyle = hatch;
        context.fill();
      }
      // A part that is hardly wider than a line would vanish behind its border.
      if (this.#thickness(box) >= 3) {
        context.strokeStyle = ground;
        context.lineWidth = 1;
        context.stroke();
      }
      this.#write(context, box);
      context.globalAlpha = 1;
    }
    this.#paint();
  }

  #thickness(box: Placed): number {
    const width = box.x1 - box.x0;
    return Math.min(this.shape === "sunburst" ? (width * (box.y0 + box.y1)) / 2 : width, box.y1 - box.y0);
  }

  // Whether a filter does not find a box, nor anything in it.
  #isPale(node: number): boolean {
    const [tree, found] = [this.tree, this.#found];
    if (!found || node === REST) return found !== null;
    return node === OTHERS ? !this.others().some((one) => found[one]) : node !== 0 && !found[node] && tree.size > 1;
  }

  /** Return the name of a node, or of what stands together. */
  #name(data: Placed): string {
    return data.node === OTHERS ? `${data.count} below 5%` : data.node === REST ? `${data.count} smaller` : this.tree.names[data.node];
  }

  // The figure of a box and its share of the whole.
  #figure(box: Placed): string {
    const { tree } = this;
    const size = box.node < 0 ? tree.amount(box.value ?? 0).replace(/,$/, "") : tree.columns[0].text(box.node);
    return `${size === "-" ? "0 B" : size} ${percent(box.value ?? 0, tree.areas[0])}`;
  }

  /** Describe what stands together. */
  describe(node: number): string {
    const box = this.#boxes.find((one) => one.node === node);
    return box ? `${this.#name(box)}: ${this.#figure(box)}. A click shows them.` : "";
  }

  #write(context: CanvasRenderingContext2D, box: Placed): void {
    context.fillStyle = "#111";
    if (this.shape === "sunburst") {
      const radius = box.y1 - box.y0;
      const length = ((box.x1 - box.x0) * (box.y0 + box.y1)) / 2;
      if (box.depth === 0) {
        const text = fitted(context, this.#name(box), 2 * radius - 8);
        context.fillText(text, this.#width / 2 - context.measureText(text).width / 2, this.#height / 2);
      } else if (length > 13 && radius > 30) {
        const angle = (box.x0 + box.x1) / 2 - Math.PI / 2;
        context.save();
        context.translate(this.#width / 2, this.#height / 2);
        context.rotate(angle);
        const isLeft = Math.cos(angle) < 0;
        if (isLeft) context.rotate(Math.PI);
        const text = fitted(context, this.#name(box), radius - 8);
        context.fillText(text, isLeft ? -box.y0 - 4 - context.measureText(text).width : box.y0 + 4, 0);
        context.restore();
      }
      return;
    }
    const width = box.x1 - box.x0;
    const height = this.shape === "treemap" && box.children ? 16 : box.y1 - box.y0;
    if (width < 28 || height < 13) return;
    const y = this.shape === "treemap" ? box.y0 + 9 : (box.y0 + box.y1) / 2;
    const name = this.#name(box);
    const figure = this.#figure(box);
    // The figure stands below the name or, where there is no room, behind it.
    const isBelow = this.shape === "icicle" ? height >= 2 * LINE_PX + 2 : !box.children && height >= 2 * LINE_PX + 4;
    const behind = isBelow ? "" : `  ${figure}`;
    const isBehind = !isBelow && context.measureText(name + behind).width <= width - 8;
    const nameY = isBelow && this.shape === "icicle" ? y - LINE_PX / 2 : y;
    context.fillText(isBehind ? name + behind : fitted(context, name, width - 8), box.x0 + 4, nameY);
    if (isBelow && context.measureText(figure).width <= width - 8) context.fillText(figure, box.x0 + 4, nameY + LINE_PX);
  }

  #trace(context: CanvasRenderingContext2D, box: Placed): boolean {
    context.beginPath();
    if (this.shape === "sunburst") {
      if (box.x1 - box.x0 < 0.002) return false;
      const [x, y] = [this.#width / 2, this.#height / 2];
      if (box.depth === 0) context.arc(x, y, box.y1, 0, 2 * Math.PI);
      else {
        context.arc(x, y, box.y1, box.x0 - Math.PI / 2, box.x1 - Math.PI / 2);
        context.arc(x, y, box.y0, box.x1 - Math.PI / 2, box.x0 - Math.PI / 2, true);
        context.closePath();
      }
    } else {
      if (box.x1 - box.x0 < 0.4 || box.y1 - box.y0 < 0.4) return false;
      context.rect(box.x0, box.y0, box.x1 - box.x0, box.y1 - box.y0);
    }
    return true;
  }

  // Copy the drawing and add the marks.
  #paint(): void {
    if (!this.#base || !this.#width) return;
    const context = this.element.getContext("2d")!;
    const ratio = devicePixelRatio || 1;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.element.width, this.element.height);
    context.drawImage(this.#base, 0, 0);
    context.scale(ratio, ratio);
    for (const [node, width] of [[this.#selected, 3], [this.#hovered, 2]]) {
      const box = node > 0 ? this.#boxes.find((one) => one.node === node) : undefined;
      if (!box || !this.#trace(context, box)) continue;
      context.strokeStyle = getComputedStyle(this.element).color;
      context.lineWidth = width;
      context.stroke();
    }
  }

  #nodeAt(event: MouseEvent): number {
    let [x, y] = [event.offsetX, event.offsetY];
    if (this.shape === "sunburst") {
      const [right, down] = [x - this.#width / 2, y - this.#height / 2];
      x = (Math.atan2(down, right) + Math.PI / 2 + 2 * Math.PI) % (2 * Math.PI);
      y = Math.hypot(right, down);
    }
    for (let place = this.#boxes.length - 1; place >= 0; place -= 1) {
      const box = this.#boxes[place];
      if (x >= box.x0 && x < box.x1 && y >= box.y0 && y < box.y1) return box.node;
    }
    return -1;
  }

  #point(event: MouseEvent): void {
    const node = this.#nodeAt(event);
    this.element.style.cursor = node > 0 || node === OTHERS ? "pointer" : "default";
    this.events.onhover(node, event);
  }
}

/** Write the path and the figures of a node. */
export function described(tree: Tree, node: number): string {
  const names = node ? tree.path(node).map((one) => tree.names[one]) : [tree.names[0]];
  const figures = tree.columns.map((column) => {
    const text = column.text(node);
    return text && text !== "-" ? `${column.label.toLowerCase()} ${text}` : "";
  });
  const share = tree.columns.some((column) => column.key === "share") ? "" : percent(tree.areas[node], tree.areas[0]);
  return [names.join(" › "), ...figures, share].filter(Boolean).join(", ");
}

function hatching(context: CanvasRenderingContext2D): CanvasPattern {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const lines = tile.getContext("2d")!;
  lines.strokeStyle = "rgba(0,0,0,0.38)";
  lines.lineWidth = 1.2;
  for (const from of [-8, 0, 8]) {
    lines.moveTo(from, 8);
    lines.lineTo(from + 8, 0);
  }
  lines.stroke();
  return context.createPattern(tile, "repeat")!;
}

const ELLIPSIS = "…";

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
