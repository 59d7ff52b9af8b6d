// The page: which sections it has, by what it is about.

import { answerStrip, budgetsSection, changeStrip, Count, sides } from "./answer";
import { readAnswers, table, written } from "./data";
import { choice, el, fill, save } from "./dom";
import { findingsSection, notesSection, originsSection } from "./findings";
import { heapAccountSection, profileSections, profilesTable } from "./heap";
import { changeTree, GROWN, heldByOwner, isVirtual, ledgerTree, needTree, objectChangeTree, objectTree, renamedOwners, SAME, SHRUNK, UNUSED, USED } from "./ledger";
import { printable } from "./names";
import { pageChangeSection, pageMapSection } from "./pagemap";
import { pause } from "./turns";
import { kindLegend, treeView } from "./view";

function header(title: string, lead: string, answer: any): HTMLElement {
  const name = `footprint-${(answer.target?.command || answer.target?.name || "report").toString().split(/[\s/]/).filter(Boolean).pop() ?? "report"}`;
  return el("header", {}, el("h1", {}, title), lead ? el("p", { class: "lead" }, printable(lead)) : null,
    el("button", { type: "button", id: "download", onclick: () =>
      save(written(answer), `${name.replace(/[^A-Za-z0-9._-]/g, "_").slice(0, 80)}.json`, "application/json") }, "Save as JSON"));
}

function titleOf(audit: any): [string, string] {
  const { target } = audit;
  const what = target.pid === null ? printable(target.name) : `process ${target.pid}`;
  return [what.length > 120 ? `${what.slice(0, 120)}…` : what, target.command.slice(0, 2000)];
}

function ledgerSection(audit: any): HTMLElement {
  const tree = ledgerTree(audit);
  const what = isVirtual(audit) ? "Where the mapped writable memory is" : "Where the memory is";
  return el("section", { class: "section", id: "ledger" }, el("h2", {}, what),
    table(audit.ledger).size ? treeView(tree, what, kindLegend(tree)) : el("p", { class: "empty" }, "The ledger is empty: no memory is known of it."));
}

function librariesSection(audit: any): HTMLElement | null {
  if (!table(audit.objects).size) return null;
  const view = el("div");
  const show = (order: "held" | "needs") => fill(view, ...(order === "held"
    ? [el("p", {}, "Below each object stand those that are there only for it."),
      treeView(objectTree(audit).tree, "Objects", [[USED, "used"], [UNUSED, "unused, or leaves with what is"]])]
    : [el("p", {}, "Below each object stand those that it needs, with the symbols that it uses of them. What one needs in its turn stands below its first row only; its other rows say `repeated`."),
      treeView(needTree(audit), "Needs", [], null)]));
  show("held");
  const isTold = table(audit.objects).column("needs").some((one) => one !== null);
  return el("section", { class: "section", id: "libraries" }, el("h2", {}, "Objects, and what would leave with each"),
    isTold ? el("div", { class: "tools" }, choice("Order of objects", [["held", "Who holds whom"], ["needs", "Who needs whom"]] as const, "held", show)) : null,
    view);
}

function objectChangesSection(diff: any, old: any, now: any): HTMLElement | null {
  if (!table(old.objects).size || !table(now.objects).size) return null;
  const tree = objectChangeTree(old, now, renamedOwners(diff));
  return el("section", { class: "section", id: "libraries" }, el("h2", {}, "Objects that changed"),
    el("p", {}, "Each stands below what holds it now, or what is gone below what held it before. Retained is the change with all that it holds."),
    treeView(tree, "Objects before and after", [[GROWN, "grew"], [SHRUNK, "shrank"]]));
}

const NO_FINDINGS = (audit: any) =>
  table(audit.objects).size ? "Nothing was found that it could do without."
    : "What it could do without was not looked for: that takes the live process, or the program.";

/** What makes a part of the page; null where the answer has nothing for it. */
type Part = () => Node | null;

function auditPage(answers: any): Part[] {
  const { audit } = answers;
  const count = new Count(BigInt(audit.projection.count || 1));
  return [
    () => header(...titleOf(audit), answers.check ?? audit), () => answerStrip(audit, count),
    () => budgetsSection(answers.check), () => ledgerSection(audit),
    () => heapAccountSection(audit.heap_account),
    () => pageMapSection({ maps: audit.page_maps, variables: answers.variables }, audit.target.page_bytes, heldByOwner(audit)),
    () => librariesSection(audit),
    () => findingsSection("Findings", table(audit.findings), count, NO_FINDINGS(audit)),
    () => notesSection(table(audit.notes), answers.warning), () => originsSection(audit),
  ];
}

function diffPage(answers: any): Part[] {
  const { diff, old, audit } = answers;
  const count = new Count(BigInt(diff.count || 1));
  const pages = { before: { maps: old.page_maps, variables: answers.old_variables }, after: { maps: audit.page_maps, variables: answers.variables } };
  const views = el("div");
  const show = (side: "change" | "before" | "after") => {
    if (side === "change") {
      const tree = changeTree(diff);
      fill(views, el("section", { class: "section", id: "ledger" }, el("h2", {}, "Where it changed"),
        el("p", {}, `${diff.same_count} rows are as before.`),
        table(diff.diff).size ? treeView(tree, "What changed", [[GROWN, "grew"], [SHRUNK, "shrank"], [SAME, "as much as before"]]) : el("p", { class: "empty" }, "No row differs.")),
        old.target.page_bytes === audit.target.page_bytes
          ? pageChangeSection(pages.before, pages.after, audit.target.page_bytes, renamedOwners(diff)) : null,
        objectChangesSection(diff, old, audit),
        findingsSection("Findings that are new", table(diff.new_findings), count, "None."),
        findingsSection("Findings that are gone", table(diff.fixed_findings), count, "None."));
    } else {
      const one = side === "before" ? old : audit;
      fill(views, ledgerSection(one),
        pageMapSection(pages[side], one.target.page_bytes, heldByOwner(one)),
        heapAccountSection(one.heap_account), librariesSection(one),
        findingsSection("Findings", table(one.findings), count, NO_FINDINGS(one)));
    }
  };
  show("change");
  const [before, after] = [old, audit].map((one) => titleOf(one));
  return [
    () => header("Before and after", `${before[0]} ${before[1]} → ${after[0]} ${after[1]}`, diff),
    () => changeStrip(diff, count), () => el("div", { class: "sides" }, sides(show)), () => views,
    () => notesSection(table(diff.notes), answers.warning),
    () => originsSection(old, "How the figures before were obtained"),
    () => originsSection(audit, "How those after were obtained"),
  ];
}

function heapPage(answers: any): Part[] {
  const { heap } = answers;
  const files = table(heap.profiles).column<string>("file");
  const views = el("div");
  const show = (file: string) => fill(views, ...profileSections(answers, file));
  const select = el("select", { id: "file", onchange: () => show(files[select.selectedIndex]) },
    ...files.map((file) => el("option", {}, printable(file))));
  show(files[0]);
  const commands = table(heap.profiles).column<string | null>("command");
  return [
    () => header("Heap over time", commands[0] ?? "", heap),
    () => (files.length > 1 ? profilesTable(heap) : null),
    () => (files.length > 1 ? el("p", { class: "tools" }, el("label", { for: "file" }, "Profile"), select) : null),
    () => views,
    () => (table(heap.findings).size ? findingsSection("Findings", table(heap.findings), new Count(1n), "") : null),
    () => notesSection(table(heap.notes), answers.warning),
  ];
}

/** The last part of those that are seen first: the ledger, or what stands in its place. */
const FIRST = 3;

async function start(): Promise<void> {
  const app = document.getElementById("app")!;
  try {
    const answers = await readAnswers();
    const parts = answers.kind === "diff" ? diffPage(answers) : answers.kind === "heap" ? heapPage(answers) : auditPage(answers);
    // What stands first can be used while the rest is made, one part at a time.
    for (const [place, part] of parts.entries()) {
      if (place > FIRST) await pause();
      const made = part();
      if (made) app.append(made);
      if (place !== FIRST) continue;
      document.getElementById("static")!.classList.add("paper");
      app.hidden = false;
      document.documentElement.dataset.interactive = String(Math.round(performance.now()));
    }
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  } catch (error) {
    app.hidden = true;
    document.getElementById("static")!.classList.remove("paper");
    document.getElementById("static")!.prepend(
      el("p", { class: "warning" }, `The page could not be drawn in this browser (${String(error).slice(0, 200)}); the report as text follows.`));
    document.documentElement.dataset.ready = "failed";
    throw error;
  }
}

void start();
