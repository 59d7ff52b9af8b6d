// The report: it reads the data and shows the parts, the visible ones first.

import { el } from "./dom";
import { followMedium } from "./medium";
import { contents, goTo } from "./page";
import { readData } from "./read";
import { partsOf } from "./reports";
import { nextTask } from "./scheduler";
import { Store } from "./store";

declare global {
  interface Window {
    /** The state of the report, for tests. */
    footprint: Store;
  }
}

/** The place of the last part that is visible at first: the ledger, or what takes its place. */
const LAST_VISIBLE = 3;

async function draw(app: HTMLElement, onvisible: () => void): Promise<void> {
  const store = (window.footprint = new Store());
  followMedium();
  const { element, list } = contents(store, app);
  const data = await readData();
  // One after the other, so that none blocks the browser for long. The visible parts can be used while the others are made.
  for (const [place, part] of partsOf(data, store).entries()) {
    await nextTask();
    const made = part();
    if (made) app.append(made);
    await store.settled();
    if (place === 0) app.append(element, ...(data.failure ? [el("p", { class: "failure", role: "alert" }, el("strong", {}, data.failure))] : []));
    if (place === LAST_VISIBLE) onvisible();
  }
  list();
  // The sections of these differ.
  for (const name of ["side", "file"]) store.watch(name, list);
  goTo(store);
}

async function start(): Promise<void> {
  const app = document.getElementById("app")!;
  const text = document.getElementById("static")!;
  const { dataset } = document.documentElement;
  try {
    await draw(app, () => {
      text.hidden = true;
      app.hidden = false;
      dataset.interactive = String(Math.round(performance.now()));
    });
    dataset.ready = String(Math.round(performance.now()));
  } catch (error) {
    app.hidden = true;
    text.hidden = false;
    text.prepend(el("p", { class: "warning" },
      `The report could not be drawn in this browser (${String(error).slice(0, 200)}); it follows as text.`));
    dataset.ready = "failed";
    throw error;
  }
}

void start();
