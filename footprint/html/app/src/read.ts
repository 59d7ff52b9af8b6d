// Reads the data out of the report.

import type { PackedTable } from "./columns";
import type { ReportData } from "./data";
import { lookThrough } from "./names";
import { nextTask } from "./scheduler";
import { Table } from "./table";

/** The characters of base64 that are read between two yields: four of them are three bytes. */
const PIECE_CHARS = 1 << 19;

/** Read the data out of the report. */
export async function readData(): Promise<ReportData> {
  const element = document.getElementById("data")!;
  const encoded = element.textContent!;
  element.remove();
  let at = 0;
  const stream = new ReadableStream<BufferSource>({
    async pull(control) {
      await nextTask();
      const binary = atob(encoded.slice(at, (at += PIECE_CHARS)));
      if (!binary) return control.close();
      const bytes = new Uint8Array(binary.length);
      for (let place = 0; place < bytes.length; place += 1) bytes[place] = binary.charCodeAt(place);
      control.enqueue(bytes);
    },
  });
  const text = await new Response(stream.pipeThrough(new DecompressionStream("deflate"))).text();
  await nextTask();
  lookThrough(text);
  await nextTask();
  // Two lines: one alone would be one long step.
  const [answers, texts] = text.split("\n");
  const known: (string | null)[] = JSON.parse(texts);
  await nextTask();
  return unpacked(JSON.parse(answers), known) as ReportData;
}

function isPacked(value: object): value is PackedTable {
  return "rows" in value && typeof value.rows === "number" && "keys" in value && "texts" in value && "values" in value;
}

function unpacked(value: unknown, texts: (string | null)[]): unknown {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  if (isPacked(value)) return new Table(value, texts);
  // A file may be called `constructor`: no name may find what each object of the language has.
  return Object.setPrototypeOf(Object.fromEntries(Object.entries(value).map(([key, member]) => [key, unpacked(member, texts)])), null);
}
