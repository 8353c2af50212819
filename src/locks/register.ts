/** What a grant changes for its owner: the holds it has, whose turn it is, and what is due next. */
import type { Instant } from "../base/clock.js";
import { changed, turnsOf } from "./commands.js";
import { addHold, pushOpen } from "./holds.js";
import type { Grant } from "./owner-lock.js";
import { scheduleRenewal } from "./renewal.js";

export interface Registration {
  /** When the command that took it was sent. */
  readonly sent: Instant;
  /** The command may arrive once more. */
  readonly resent: boolean;
  /** `lock.unlock()` gives it back. */
  readonly isBare: boolean;
}

/** Puts a hold everywhere before the call that wanted it resolves. */
export function register(grant: Grant, { sent, resent, isBare }: Registration): void {
  const { own, backend, frame } = grant;
  if (frame) turnsOf(own).begin(frame, backend.accessMode);
  addHold(own, grant, resent);
  if (isBare) pushOpen(own, grant);
  if (grant.renewed) scheduleRenewal(own, sent);
  changed(own);
}
