// The medium of the report: a change between screen and paper, or light and dark, draws anew what is drawn by the script.

export const paper = matchMedia("print");

/** The event that elements on the page get after such a change. */
export const REDRAW = "redraw";

/** Tell all pictures and tables of the page; those that have left it are not known any more. */
export function followMedium(): void {
  const tell = () => document.querySelectorAll(".picture, .cells, .grid").forEach((one) => one.dispatchEvent(new Event(REDRAW)));
  for (const one of [paper, matchMedia("(prefers-color-scheme: dark)")]) one.addEventListener("change", tell);
}
