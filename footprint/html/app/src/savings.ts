// The best savings, on the first screen.

import type { Advice } from "./answerdata";
import type { LedgerAnswer } from "./data";
import { el, fill, prose } from "./dom";
import { keyOf } from "./findingcard";
import { printable, shortened } from "./names";
import type { Page } from "./page";
import { table } from "./table";
import { atCount, paidByEach } from "./terms";
import { formatBytes, grouped } from "./units";

/** Say what was looked for and not found; nothing where there are findings. */
export function whyNone(audit: LedgerAnswer): string {
  return table(audit.searched_rules).size ? "Nothing was found that it could do without."
    : "run" in audit ? "What it could do without was not looked for, and the process that ran has ended: `footprint audit` of its program looks."
    : audit.target.is_live ? "What it could do without was not looked for: `footprint audit --findings` looks."
    : "What it could do without was not looked for: that needs the live process, or the program.";
}

// The names of the subjects, and how many more there are.
function names(subjects: string[]): string {
  const shown = subjects.slice(0, 2).map((subject) => printable(shortened(subject.slice(subject.lastIndexOf("/") + 1), 40)));
  return shown.join(", ") + (subjects.length > shown.length ? ` and ${grouped(subjects.length - shown.length)} more` : "");
}

/** List the largest savings of what the user builds, with their remedies, and what else saves; a click goes to the findings. */
export function savings(audit: LedgerAnswer, advice: Advice | undefined, { store, count }: Page): HTMLElement {
  const findings = table(audit.findings);
  if (!findings.size) return el("p", {}, ...prose(whyNone(audit)));
  const all = table(advice?.savings).rows();
  const list = el("ol", { class: "savings" });
  count.watch((many) => {
    const amount = (bytes: number) => [el("strong", {}, formatBytes(bytes)), many > 1n ? ` each, ${formatBytes(atCount(paidByEach(bytes), many)!)} in ${grouped(many)}: ` : " each: "];
    fill(list, ...all.map(({ rule, step, subjects, saving_bytes, confidence }) => el("li", {}, ...amount(saving_bytes),
      el("span", { class: "subject" }, names(subjects)), ` (${rule}) `,
      el("span", { class: `evidence confidence-${confidence}` }, confidence === "proof" ? confidence : `${confidence} confidence`),
      el("span", { class: "remedy" }, ...prose(step)))),
    advice && advice.rest_count > 0 && el("li", {}, ...amount(advice.rest_bytes), `${grouped(advice.rest_count)} more`),
    advice && advice.packaged_count > 0 && el("li", {}, ...amount(advice.packaged_bytes), `by rebuilding ${advice.packaged_count === 1 ? "1 file" : `${grouped(advice.packaged_count)} files`} of packages`));
  });
  return el("div", {}, all.length ? null : el("p", {}, advice?.rest_count ? "No saving is 0.1% of the cost or more." : advice?.packaged_count ? "Nothing of its own saves memory." : "No finding saves memory by itself."),
    list, el("a", { href: "#at=findings", onclick: (event: MouseEvent) => {
      event.preventDefault();
      const first = findings.rows().find(({ remedy }) => remedy === all[0]?.step);
      if (first) store.set("finding", keyOf(first));
      // A second click goes there, too.
      store.set("at", null);
      store.set("at", "findings");
    } }, findings.size === 1 ? "The finding" : `All ${grouped(findings.size)} findings`));
}
