// The most important lines of an answer.

import type { AnswerData } from "./answerdata";
import { el, evidenceMark, plainTable, prose } from "./dom";
import { EVIDENCE } from "./evidence";
import { table } from "./table";

/** Make the section with the verdicts of an answer, and its figures that no other section has. */
export function leadSection({ answer, verdicts, parts }: AnswerData): HTMLElement | null {
  // A section has the figures of a cost, and the releases of a trend.
  const told = answer.projection || answer.trends ? [] : table(parts).rows().filter(({ heading, facts, sentences }) => facts.length || (sentences.length && (!heading || !table(answer.findings).size)));
  // The section of the cost says it, but for how many fit.
  const said = table(verdicts).rows().filter((one) => one.is_failure || !answer.projection || answer.projection.memory_bytes !== null);
  if (!said.length && !told.length) return null;
  return el("section", { class: "answer", "aria-label": "The answer" },
    ...said.map((one) => el("p", { class: one.is_failure ? "verdict wrong" : "verdict" }, ...prose(one.text))),
    ...told.flatMap(({ heading, sentences, facts, columns }) => [
      facts.length && heading ? el("h3", {}, heading) : null,
      ...sentences.map((text) => el("p", {}, ...prose(text))),
      facts.length ? factTable(facts, columns, heading) : null,
    ]));
}

const isEvidence = (text: string) => EVIDENCE.some((one) => one === text);

function factTable(facts: string[][], columns: string[], label: string): HTMLElement {
  return plainTable(columns, facts.map(([what, size, known]) => [
    el("span", { class: "fact" }, what), size, isEvidence(known) ? evidenceMark(known) : known].slice(0, columns.length)), label);
}
