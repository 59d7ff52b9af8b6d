// What is said of the boxes of a picture and of their nodes.

import { OTHERS, REST } from "./boxes";
import type { Placed } from "./layout";
import type { Tree } from "./tree";
import { percent } from "./units";

/** Return the name of a box. */
export function boxName(tree: Tree, { node, count }: Placed): string {
  return node === OTHERS ? `${count} below 5%` : node === REST ? `${count} smaller` : tree.names[node];
}

/** Write the figure of a box and its share of the whole. */
export function boxFigure(tree: Tree, { node, value }: Placed): string {
  const size = node < 0 ? tree.amount(value).replace(/,$/, "") : tree.columns[0].text(node);
  return `${size === "-" ? "0 B" : size} ${percent(value, tree.areas[0])}`;
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
