// Copies a text to the clipboard, or saves it as a file.

import { el, fill } from "./dom";

/** Copy a text to the clipboard; where the browser refuses, show the text so that the reader can copy it. */
export async function copy(text: string, status: HTMLElement, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    fill(status, `${what} copied`);
  } catch {
    const area = el("textarea", { "aria-label": what, readonly: true, rows: 6 });
    area.value = text;
    fill(status, "This browser refuses to copy. Copy the text here: ", area);
    area.select();
  }
}

/** Save a text in pieces as a file. */
export function save(pieces: BlobPart[], name: string, type: string): void {
  const url = URL.createObjectURL(new Blob(pieces, { type }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
