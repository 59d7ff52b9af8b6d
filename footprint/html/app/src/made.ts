// What every report holds: when and where it was made.

/** What every report holds. */
export interface Common {
  warning: string;
  /** Why the command fails; "" where it does not. */
  failure: string;
  made: Made | null;
}

/** When and where an audit was made, or only the report of it. */
export interface Made {
  date: string;
  host: string;
  is_report: boolean;
}
