/** The fenced lock: the plain lock, and a counter from which each outermost grant takes a token. */
import type { LockKind } from "../base/events.js";
import { tokenCounter } from "../base/names.js";
import type { AnyScriptCall } from "../redis/call.js";
import { fencedPass, fencedTake } from "../scripts/generated.js";
import { type Heir, Kind, type Taken, type Try } from "./kind.js";

export class Fenced extends Kind {
  override get kind(): LockKind {
    return "fenced";
  }

  override take(wireId: string, { lease }: Try): AnyScriptCall {
    const keys = { lock: this.key, tombstone: this.over(wireId), counter: tokenCounter(this.key) };
    return this.call(fencedTake, keys, { owner: wireId, lease });
  }

  override readTaken(reply: unknown, attempt: Pick<Try, "coWaiters">): Taken {
    const [word, token] = reply as unknown[];
    if (Number(word) !== 1) return super.readTaken(reply, attempt);
    return { is: "granted", token: BigInt(String(token)) };
  }

  override pass(wireId: string, heir: Heir): AnyScriptCall {
    const keys = { counter: tokenCounter(this.key), ...this.passKeys(wireId, heir) };
    return this.call(fencedPass, keys, this.passArguments(wireId, heir));
  }
}
