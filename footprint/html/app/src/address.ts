// The state of the report as the fragment of its address.

import { decoded, encoded } from "./names";

/** Return the address of the report with a state. */
export function addressOf(values: Map<string, string>): string {
  const text = [...values].map(([name, value]) => `${name}=${encoded(value).replaceAll("%2F", "/")}`).join("&");
  return `${location.href.split("#")[0]}${text && "#"}${text}`;
}

/** Return the state in the fragment of an address. */
export function valuesIn(fragment: string): Map<string, string> {
  const pairs = fragment.slice(1).split("&").filter((one) => one.includes("="));
  return new Map(pairs.map((one) => {
    const at = one.indexOf("=");
    return [one.slice(0, at), decoded(one.slice(at + 1))] as const;
  }));
}
