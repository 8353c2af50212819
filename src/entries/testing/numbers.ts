/** Numbers and their texts as C has them, since Redis and its Lua are written in it. Texts are one character per byte. */

const REAL = /^[ \t-\r]*([+-]?(?:infinity|inf|nan|0x[\da-f]+|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?))/i;

/** `strtod`: the number that a text begins with, and how many characters that takes; undefined if it begins with none. */
export function strtod(text: string): { readonly value: number; readonly length: number } | undefined {
  const [matched, numeral = ""] = REAL.exec(text) ?? [];
  if (matched === undefined) return undefined;
  const [, sign, digits = ""] = /^([+-]?)(.*)$/.exec(numeral) ?? [];
  const value = /^inf/i.test(digits)
    ? Number.POSITIVE_INFINITY
    : Number(/^nan/i.test(digits) ? "NaN" : digits);
  return { value: sign === "-" ? -value : value, length: matched.length };
}

/** The most digits that JavaScript tells of a number. */
const MOST_DIGITS = 100;

/** `printf("%.<digits>g")`. */
export function formatNumber(value: number, digits: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  if (Number.isSafeInteger(value) && Math.abs(value) < 10 ** digits) return String(value);
  const { digits: figures, exponent } = rounded(Math.abs(value), digits);
  const sign = value < 0 ? "-" : "";
  if (exponent < -4 || exponent >= digits) {
    const size = String(Math.abs(exponent)).padStart(2, "0");
    return `${sign}${trimmed(pointed(figures, 1))}e${exponent < 0 ? "-" : "+"}${size}`;
  }
  if (exponent < 0) return `${sign}${trimmed(`0.${"0".repeat(-exponent - 1)}${figures}`)}`;
  return `${sign}${trimmed(pointed(figures, exponent + 1))}`;
}

/**
 * The number in `count` digits, the first one times 10^exponent. Of two texts that are equally near, C takes the even
 * one and JavaScript the greater.
 */
function rounded(value: number, count: number): { readonly digits: string; readonly exponent: number } {
  const [near = "", power = "0"] = value.toExponential(count - 1).split("e");
  const [exact = "", exactPower = "0"] = value.toExponential(MOST_DIGITS).split("e");
  const all = exact.replace(".", "");
  const below = all.slice(0, count);
  const isTie = /^50*$/.test(all.slice(count));
  if (isTie && Number(below.at(-1)) % 2 === 0) return { digits: below, exponent: Number(exactPower) };
  return { digits: near.replace(".", ""), exponent: Number(power) };
}

function pointed(figures: string, at: number): string {
  return at < figures.length ? `${figures.slice(0, at)}.${figures.slice(at)}` : figures;
}

function trimmed(decimal: string): string {
  return decimal.includes(".") ? decimal.replace(/\.?0+$/, "") : decimal;
}

const LEAST = -(2n ** 63n);
const MOST = 2n ** 63n - 1n;

/** An integer of 64 bits as Redis reads one: without spaces, plus sign or leading zeros. */
export function parseInteger(text: string): bigint | undefined {
  if (!/^(?:0|-?[1-9]\d{0,18})$/.test(text)) return undefined;
  const value = BigInt(text);
  return fitsInteger(value) ? value : undefined;
}

export function fitsInteger(value: bigint): boolean {
  return value >= LEAST && value <= MOST;
}

/** A score of a sorted set. */
export function parseScore(text: string): number | undefined {
  const number = strtod(text);
  const fits = number && number.length === text.length && !/^[ \t-\r]/.test(text);
  return fits && !Number.isNaN(number.value) ? number.value : undefined;
}

/** A score as Redis 7 tells it, and a number as scripts pass it to commands. */
export function formatScore(value: number): string {
  return formatNumber(value, 17);
}
