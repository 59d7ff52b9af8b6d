// Bytes to text and back, as in footprint/units.py.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** Write a size in the largest binary unit that keeps it at 1 or above, with three or four significant digits. */
export function formatBytes(size: number | bigint): string {
  const whole = typeof size === "bigint" ? size : BigInt(Math.round(size));
  const sign = whole < 0n ? "-" : "";
  const magnitude = whole < 0n ? -whole : whole;
  let power = 0;
  while (magnitude >> BigInt(10 * (power + 1)) && power + 1 < UNITS.length) power += 1;
  const unit = 1n << BigInt(10 * power);
  if (magnitude % unit === 0n) return `${sign}${magnitude / unit} ${UNITS[power]}`;
  const quantity = Number(magnitude) / Number(unit);
  const decimals = quantity < 9.995 ? 2 : quantity < 999.95 ? 1 : 0;
  const text = rounded(magnitude, unit, decimals);
  if (text === "1024" && power + 1 < UNITS.length) return `${sign}1.00 ${UNITS[power + 1]}`;
  return `${sign}${text} ${UNITS[power]}`;
}

// Ties go to the even digit, as in Python; toFixed would round them up.
function rounded(magnitude: bigint, unit: bigint, decimals: number): string {
  const scaled = magnitude * 10n ** BigInt(decimals);
  let whole = scaled / unit;
  const twice = (scaled % unit) * 2n;
  if (twice > unit || (twice === unit && whole % 2n === 1n)) whole += 1n;
  const digits = whole.toString().padStart(decimals + 1, "0");
  return decimals ? `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}` : digits;
}

/** Write a change: zero is a dash, growth has a plus sign. */
export function formatChange(size: number | bigint): string {
  return Number(size) === 0 ? "-" : `${size > 0 ? "+" : ""}${formatBytes(size)}`;
}

/** Read a size such as `32GiB` or `1.5 MB`; return null for other texts, also for a bare `32G`. */
export function parseBytes(text: string): bigint | null {
  const found = /^\s*([0-9]{1,30})(?:\.([0-9]{1,30}))?\s*([A-Za-z]*)\s*$/.exec(text);
  if (!found) return null;
  const [, digits, decimals = "", unit] = found;
  const name = unit.toLowerCase();
  const power = "kmgtpe".indexOf(name[0] ?? "") + 1;
  let factor: bigint;
  if (name === "" || name === "b") factor = 1n;
  else if (power && name.slice(1) === "b") factor = 1000n ** BigInt(power);
  else if (power && name.slice(1) === "ib") factor = 1024n ** BigInt(power);
  else return null;
  const scale = 10n ** BigInt(decimals.length);
  return (BigInt(digits + decimals) * factor + scale / 2n) / scale;
}

/** Write a whole number with commas. */
export function grouped(count: number | bigint): string {
  return count.toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Write a part as a percentage of a whole. A tie such as 6.25 goes to the even digit, as in Python. */
export function percent(part: number, whole: number): string {
  const value = (part / whole) * 100;
  return whole ? `${(value % 1 === 0.25 ? value - 0.05 : value).toFixed(1)}%` : "";
}
