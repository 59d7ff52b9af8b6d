// The colours of the groups of a tree.

import type { Tree } from "./tree";

/** Colour each group as its largest part. */
export function colourGroups(tree: Tree): void {
  const largest = new Array<number>(tree.size).fill(-1);
  for (let node = tree.size - 1; node > 0; node -= 1) {
    const parent = tree.parents[node];
    if (tree.areas[node] > largest[parent]) {
      largest[parent] = tree.areas[node];
      tree.colours[parent] = tree.colours[node];
    }
  }
}
