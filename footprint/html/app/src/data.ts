// The data of a report, by its kind.

import type { Advice, AnswerData } from "./answerdata";
import type { Common } from "./made";
import type { MapDetails } from "./pagedata";
import type { Payer } from "./payers";
import type { Rows } from "./table";
import type { AuditAnswer, CallRow, CheckAnswer, DiffAnswer, FitLimit, FunctionBytes, GroupAnswer, HeapAnswer } from "./types";

/** A moment of a heap profile: a snapshot by its number, or a tally by its name. */
export interface Moment {
  file: string;
  moment: number | string;
  bytes: number;
  calls: Rows<CallRow>;
  shares: Rows<FunctionBytes>;
}

/** An audit that was made where it could ask how many more the limits on tasks let run. */
interface Placed extends Common {
  limits?: Rows<FitLimit>;
  payers: Rows<Payer>;
  advice?: Advice;
}

export interface AuditData extends Placed {
  kind: "audit";
  audit: AuditAnswer;
  maps: MapDetails;
  check?: CheckAnswer;
}

export interface GroupData extends Placed {
  kind: "group";
  audit: GroupAnswer;
  check?: CheckAnswer;
}

export interface DiffData extends Common {
  kind: "diff";
  diff: DiffAnswer;
  old: AuditAnswer | GroupAnswer;
  audit: AuditAnswer | GroupAnswer;
  old_maps: MapDetails;
  maps: MapDetails;
}

export interface HeapData extends Common {
  kind: "heap";
  /** Who asked for most. */
  verdict: string;
  heap: HeapAnswer;
  /** All memory in use at each row of `heap.snapshots`. */
  used_bytes: number[];
  /** By the first name of each profile, the snapshots that the user named of it. */
  named: Record<string, (number | null)[]>;
  moments: Record<string, Moment>;
  /** By profile, which of its call trees the report lacks. */
  left_out: Record<string, string>;
}

/** The data of a report of any kind. */
export type ReportData = AnswerData | AuditData | DiffData | GroupData | HeapData;

/** An audit of a process, or of a group that is shown as one: the totals that both have. */
export type LedgerAnswer = Omit<AuditAnswer, "totals" | "projection" | "verb" | "run"> & { totals: Pick<AuditAnswer["totals"], "private_bytes"> };
