// Libraries that are new because an object needs them now.

import { el, plainTable } from "./dom";
import { printable } from "./names";
import { table } from "./table";
import { formatChange, grouped } from "./units";
import type { Changes } from "./waterfall";

const MOST_SHOWN = 3;

const fileName = (path: string) => path.slice(path.lastIndexOf("/") + 1);

/** Make a line for each library that is new because an object needs it now; what it brought folds under it, and many fold. */
export function rootDetails(diff: Changes): HTMLElement[] {
  const owners = table(diff.owner_changes).rows();
  const all = table(diff.roots).rows().map((root) => {
    const brought = owners.filter((one) => one.came_with === root.owner);
    const users = root.needed_by.map((path) => printable(fileName(path)));
    const why = users.length ? `which ${users.join(" and ")} now need${users.length > 1 ? "" : "s"}` : "which is opened at run time";
    const { location } = root;
    const link = location ? `; it is linked at ${printable(location.file)}${location.line ? `:${location.line}` : ""}` : "";
    const libraries = root.brought_count === 1 ? "1 library" : `${grouped(root.brought_count)} libraries`;
    return el("details", { class: "root" },
      el("summary", {}, `Came with ${printable(root.name)}, ${why}: ${libraries}, ${formatChange(root.delta_bytes)}${link}`),
      plainTable(["library", "change"], brought.map((one) => [printable(fileName(one.owner)), formatChange(one.delta_bytes)]),
        `What came with ${printable(root.name)}`));
  });
  const rest = all.splice(all.length > MOST_SHOWN + 1 ? MOST_SHOWN : all.length);
  return rest.length ? [...all, el("details", {}, el("summary", {}, `${rest.length} more came`), ...rest)] : all;
}
