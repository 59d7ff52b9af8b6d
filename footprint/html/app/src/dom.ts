// Elements made in one line. Text stays text: nothing here accepts HTML, and no text can change the direction of a line.

import { printable } from "./names";

export type Child = Node | string | null | undefined | false | 0;
type Value = string | number | boolean | null | undefined;
type Names =
  | "autocomplete" | "class" | "colspan" | "dir" | "download" | "for" | "hidden" | "href" | "id" | "max" | "maxlength" | "min" | "open"
  | "placeholder" | "readonly" | "role" | "rows" | "scope" | "selected" | "size" | "step" | "tabindex" | "type" | "value";
type Attributes = Partial<Record<Names, Value>>
  & { [name: `aria-${string}` | `data-${string}`]: Value }
  & { [K in keyof HTMLElementEventMap as `on${K}`]?: (event: HTMLElementEventMap[K]) => void };

/** Make an element; no button submits. Attributes that begin with `on` are listeners; null, undefined and false are left out. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (made instanceof HTMLButtonElement) made.type = "button";
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name.slice(2), value as EventListener);
    else made.setAttribute(name, value === true ? "" : printable(String(value)));
  }
  fill(made, ...children);
  return made;
}

/** Return a sentence as children of an element: what stands between backticks is code. */
export function prose(text: string): Child[] {
  return text.split(/`([^`]+)`/).map((part, place) => (place % 2 ? el("code", {}, part) : part));
}

/** Replace the content of an element. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren(...children.filter((child): child is Node | string => Boolean(child))
    .map((child) => (typeof child === "string" ? printable(child) : child)));
}

/** Make a section of the report; the table of contents has its heading. */
export function section(id: string, title: string, ...children: Child[]): HTMLElement {
  return el("section", { class: "section", id }, el("h2", {}, title), ...children);
}

/** Make the section of the answer, the first of the report. */
export function answerSection(title: string, ...children: Child[]): HTMLElement {
  return el("section", { class: "answer", id: "answer", "aria-labelledby": "answer-title" }, el("h2", { id: "answer-title" }, title), ...children);
}

/** Make an element of a drawing. */
export function svg(tag: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  if (text) made.textContent = text;
  return made;
}

/** Make the mark that shows how a figure is known. */
export function evidenceMark(evidence: string | null | undefined): HTMLElement | null {
  return evidence ? el("span", { class: `evidence ${evidence}` }, evidence) : null;
}

/** Make a table of texts. */
export function plainTable(columns: string[], rows: Child[][], label: string): HTMLElement {
  return el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": label },
    el("table", {},
      el("thead", {}, el("tr", {}, ...columns.map((column) => el("th", { scope: "col" }, column)))),
      el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, cell))))),
    ),
  );
}

/** Make a list of names and their texts; a name without a text is left out. */
export function factList(facts: [name: string, text: string][]): HTMLElement {
  return el("dl", { class: "facts" },
    ...facts.filter(([, text]) => text).flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]));
}
