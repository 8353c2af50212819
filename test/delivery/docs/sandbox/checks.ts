/** The checks for the claims in a block. They are global in the process that runs the block. */
import { isDeepStrictEqual } from "node:util";

/** `claim`: JSON, `undefined`, `a number`, or a class name; several with "or"; a remark in brackets may follow. */
export function $gives<T>(value: T, claim: string, line: number): T {
  const choices = claim.replace(/ \(.*\)$/, "").split(" or ");
  if (choices.some((choice) => matches(value, choice))) return value;
  throw new Error(`line ${line}: it gave ${String(value)}, not ${claim}`);
}

export async function $rejects(fn: () => Promise<unknown>, claim: string, line: number): Promise<void> {
  const code = claim.replace(/ \(.*\)$/, "");
  let value: unknown;
  try {
    value = await fn();
  } catch (error) {
    const { code: actual, name } = error as { code?: string; name?: string };
    if (actual === code || name === code) return;
    throw new Error(`line ${line}: it rejected with ${actual ?? name}, not ${claim}`, { cause: error });
  }
  throw new Error(`line ${line}: it gave ${String(value)} and did not reject with ${claim}`);
}

function matches(value: unknown, claim: string): boolean {
  if (claim === "undefined") return value === undefined;
  const type = /^an? (string|number|boolean|bigint)$/.exec(claim)?.[1];
  if (type) return typeof value === type;
  if (/^[A-Z]\w*$/.test(claim)) return classesOf(value).includes(claim);
  return isDeepStrictEqual(value, JSON.parse(claim));
}

function classesOf(value: unknown): string[] {
  const names: string[] = [];
  for (let at = Object(value); at !== null; at = Object.getPrototypeOf(at)) names.push(at.constructor?.name);
  return names;
}
