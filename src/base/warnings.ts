/**
 * Warnings of the process (`process.emitWarning`), for mistakes that no error can report; each once per place in the
 * code.
 */
import type { CallSite } from "./call-site.js";

const warned = new Set<string>();

/** `code`: by it a listener of the event `warning` recognises the warning. */
export function warnOnce(callSite: CallSite | undefined, code: string, text: string): void {
  const where = callSite?.text ?? "";
  const key = `${code} ${where}`;
  if (warned.has(key)) return;
  warned.add(key);
  process.emitWarning(where ? `${text} At ${where}` : text, { type: "HoldfastWarning", code });
}
