/** How the replies that all kinds share are read. */
import type { LockError } from "../base/errors.js";
import { TAKEN } from "../locks/backend.js";

/** The server's word on a hold. */
export function word(reply: unknown): number {
  return Number(reply);
}

/** All numbers of a reply. */
export function words(reply: unknown): number[] {
  return (reply as unknown[]).map(Number);
}

/** A key that holds other data by now was taken from its holder. */
export function takenByOthers(error: LockError): number | undefined {
  return error.code === "WRONG_DATA" ? TAKEN : undefined;
}
