// The answers that no kind of report has a view of its own for.

import type { Common } from "./made";
import type { Payer } from "./payers";
import type { Rows } from "./table";
import type { DiffAnswer, Finding, GroupAnswer, GroupProjection, Note, ProcessTotals, Projection, Release, Trend } from "./types";

/** The rows of any table. */
export type Cells = Rows<Record<string, unknown>>;

/** What to do first: findings joined by their remedy, the largest saving first. */
export interface Advice {
  savings: Rows<{ rule: string; step: string; subjects: string[]; saving_bytes: number; confidence: Finding["confidence"] }>;
  rest_bytes: number;
  rest_count: number;
  packaged_bytes: number;
  packaged_count: number;
}

/** Any answer, with the important parts of its text. */
export interface AnswerData extends Common {
  kind: "answer";
  answer: Record<string, unknown> & {
    count?: number;
    target?: { command?: string };
    whatif?: object;
    cost?: DiffAnswer["cost"];
    figures?: DiffAnswer["figures"];
    changes?: DiffAnswer["owner_changes"];
    saving?: { count: number; per_process_bytes: number | null; private_bytes: number | null };
    findings?: Rows<Finding>;
    notes?: Rows<Note>;
    trends?: Rows<Trend>;
    samples?: Rows<{ ms: number; cost_bytes: number }>;
    releases?: Rows<Release>;
    totals?: ProcessTotals;
    group?: GroupAnswer["group"];
    classes?: GroupAnswer["classes"];
    projection?: Projection | GroupProjection | null;
  };
  payers?: Rows<Payer>;
  advice?: Advice;
  /** The columns of tables that declare them where their values come from, as `sections.ts` has those of others. */
  columns?: Record<string, string>;
  verdicts: Rows<{ text: string; is_failure: boolean }>;
  /** Each heading, with the figures and sentences below it. */
  parts: Rows<{ heading: string; sentences: string[]; facts: [string, string, string][]; columns: string[] }>;
}
