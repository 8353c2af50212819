/** Ways to plant a mistake into the real library; each returns a function that removes it. */
import { createHash } from "node:crypto";
import type { AnyScript, ScriptText } from "../../src/scripts/script.js";

/** Replaces a part of a script. */
export function inScript(script: AnyScript, right: string, wrong: string): () => void {
  const mutable = script as { -readonly [K in keyof AnyScript]: AnyScript[K] };
  const { modern, legacy } = mutable;
  const mistaken = ({ text }: ScriptText): ScriptText => {
    if (!text.includes(right)) throw new Error(`${script.name} has no "${right}"`);
    const changed = text.replace(right, () => wrong);
    return { text: changed, sha1: createHash("sha1").update(changed).digest("hex") };
  };
  mutable.modern = mistaken(modern);
  mutable.legacy = mistaken(legacy);
  return () => Object.assign(mutable, { modern, legacy });
}

/** Replaces a method. */
export function inClass<T extends object, K extends keyof T>(prototype: T, name: K, wrong: T[K]): () => void {
  const right = prototype[name];
  prototype[name] = wrong;
  return () => {
    prototype[name] = right;
  };
}
