/** The fenced lock: the plain lock, and a counter from which each outermost grant takes a token. */
import type { LockKind } from "../base/events.js";
import { tokenCounter, tombstone } from "../base/names.js";
import { fencedPass, fencedTake } from "../scripts/generated.js";
import type { ScriptCall } from "../scripts/script.js";
import { type Heir, Kind, type Taken, TOMBSTONE_TTL, type Try } from "./kind.js";

export class Fenced extends Kind {
  override get kind(): LockKind {
    return "fenced";
  }

  override take(wireId: string, { lease }: Try): ScriptCall {
    const { key } = this;
    return fencedTake.with([key, tombstone(key, wireId), tokenCounter(key)], [wireId, lease]);
  }

  override readTaken(reply: unknown): Taken {
    const [word, token] = reply as unknown[];
    if (Number(word) !== 1) return super.readTaken(reply);
    return { is: "granted", token: BigInt(String(token)) };
  }

  override pass(wireId: string, { wireId: successor, lease }: Heir): ScriptCall {
    const { key } = this;
    return fencedPass.with(
      [key, this.channel, tombstone(key, wireId), tombstone(key, successor), tokenCounter(key)],
      [wireId, successor, lease, TOMBSTONE_TTL, this.publish],
    );
  }
}
