// The colours of data: one meaning for one colour. tests/unit/test_report_colours.py checks that those which stand
// together differ for every reader, and that dark text is readable on each.

/** The colours by their meanings. The first ones are those of `KINDS`, behind that of what has no kind. */
const MEANINGS = {
  rest: "#bbbbbb",
  data: "#d25a1e", bss: "#c3b44b", relro: "#e18787", text: "#3c78f0", tls: "#1ec3ff", file: "#e1f0d2", heap: "#00965a",
  stack: "#a5ff87", anonymous: "#8787b4", shared: "#ffe1ff", kernel: "#967887",
  grew: "#e69f00", shrank: "#56b4e9", unused: "#ff6a5a",
  private: "#ffb478", swapped: "#e65af0", unknown: "#78875a",
} as const;

/** The colours by their numbers; the number of a kind of memory is its place in `KIND_NAMES`. */
export const COLOURS: readonly string[] = Object.values(MEANINGS);

/** The number of the colour with a meaning. */
export function colourOf(meaning: keyof typeof MEANINGS): number {
  return Object.keys(MEANINGS).indexOf(meaning);
}

/** Return the colour with a meaning. */
export function colour(meaning: keyof typeof MEANINGS): string {
  return MEANINGS[meaning];
}
