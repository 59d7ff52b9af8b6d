// How the tables of answers are shown, in the order of the report. What is not here is only in the JSON.

/** A table of an answer. Members of a row that is an object are named as `projection.per_process_bytes`. */
export interface TableSpec {
  /** The member of the answer. */
  member: string;
  /** The heading; rows of a question have the question instead. */
  title: string;
  /** The member that names a row; of several the first that is known. */
  name: string[];
  /** The name of a row whose name is not known. */
  unnamed?: string;
  /** Rows that have these members in common are below one row. */
  groups?: string[];
  /** The members that are columns, each followed by its heading, with `|` between them; the first one sorts the table,
   * and has bars. None for those that the answer declares, or else for all that there are, of which the last one names a row. */
  columns: string;
  /** Whether the values of the first column add up to a whole. */
  hasSum?: boolean;
  /** Whether the values of every column do, as in the text. */
  hasTotals?: boolean;
  /** Whether the rows stay in their order. */
  isOrdered?: boolean;
  /** Whether names are whole paths, as in the text. */
  hasPaths?: boolean;
}

export const TABLES: TableSpec[] = [
  { member: "rows", title: "Rows", name: [], columns: "", isOrdered: true },
  { member: "program_costs", title: "What each program costs", name: ["name"], hasSum: true, columns: "cost_bytes Cost|process_count Processes" },
  { member: "host_costs", title: "What each host costs", name: ["name"], hasSum: true, columns: "cost_bytes Cost|process_count Processes" },
  { member: "programs", title: "Programs", name: ["path"], hasPaths: true, columns: "" },
  { member: "targets", title: "Side by side", name: ["target.command", "target.name"], columns: "projection.total_bytes All|projection.per_process_bytes Each|projection.shared_once_bytes Once|projection.count How many|target.pid PID|bits Bits" },
  { member: "classes", title: "Processes that are alike", name: ["command"], columns: "each_bytes One more|least_bytes Least|most_bytes Most|all_bytes All|pids PIDs" },
  { member: "growth", title: "What grows", name: ["owner"], unnamed: "[all]", columns: "bytes_per_hour An hour|least_bytes_per_hour At least|most_bytes_per_hour At most|first_bytes First|last_bytes Last|kind How" },
  { member: "grown_mappings", title: "Mappings that grew", name: ["name"], unnamed: "[no name]", columns: "delta_bytes Grew|before_bytes Before|now_bytes After|pid PID|start_addr From|end_addr To" },
  { member: "processes", title: "Processes", name: ["command"], columns: "peak_cost_bytes Peak|peak_resident_bytes Peak resident|pid PID|came_ms Came, ms|ended_ms Ended, ms|exit_code Exit code" },
  { member: "owner_changes", title: "Owners that changed", name: ["owner"], columns: "delta_bytes Change|old_bytes Before|new_bytes After" },
  { member: "changes", title: "Changes one by one", hasTotals: true, name: ["name", "owner"], columns: "delta_bytes Change|saved_bytes Saved|before_bytes Before|after_bytes After|old_bytes Before|new_bytes After|predicted_bytes Predicted" },
  { member: "diff", title: "Rows that changed", name: ["name", "section", "kind"], groups: ["owner"], columns: "delta_bytes Change|old_bytes Before|new_bytes After|status What|section Section" },
  { member: "libraries", title: "Objects", name: ["path"], columns: "" },
  { member: "missing", title: "Missing libraries", name: ["name"], columns: "cause Why", isOrdered: true },
  { member: "symbols", title: "Variables", name: ["name"], groups: ["file", "section"], hasSum: true, columns: "size_bytes Size|kind Kind|binding Binding|unit Source file|type Type" },
  { member: "sections", title: "Sections", name: ["section"], groups: ["file"], hasSum: true, columns: "size_bytes Size|named_bytes Named|overlap_bytes Named twice|kind Kind" },
  { member: "origins", title: "Where it comes from", name: ["unit", "member", "object", "cause"], groups: ["file", "section"],
    hasSum: true, columns: "size_bytes Size|named_bytes Named|variable_count Variables|object Object" },
  { member: "duplicates", title: "Copies in one file", name: ["name"], groups: ["file"], hasSum: true, columns: "waste_bytes Waste|copy_count Copies|size_bytes Size of one|cost Costs|origin From a|confidence Confidence" },
  { member: "linked_twice", title: "Linked in twice", name: ["library", "symbols"], hasSum: true, columns: "waste_bytes Waste|copy_count Copies|size_bytes Size of one|files Files" },
  { member: "mappings", title: "Mappings", name: ["name"], isOrdered: true, hasSum: true, columns: "private_bytes Private|shared_bytes Shared|start_addr Start|end_addr End|permissions May|evidence Known" },
];
