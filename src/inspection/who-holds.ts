/** Says who holds a lock, for the text of an error: it answers soon, or not at all. */
import { foremost, type NamedKey, THIS_PROCESS, type WhoHolds } from "../base/holder.js";
import type { ClientInfo } from "../presence/told.js";
import type { CommandRunner } from "../redis/command-runner.js";
import type { Inspector } from "./inspector.js";

/** Milliseconds that the error waits for the answer. */
const SOON = 250;

/** Asks Redis for one call at a time: many calls that time out together must not load a server that may be the reason. */
export function whoHolds(inspector: Inspector, client: ClientInfo, runner: CommandRunner): WhoHolds {
  let isAsking = false;
  const ask = async ({ name, key }: NamedKey) => {
    const holder = await inspector.holder(name, key);
    if (!holder) return undefined;
    const { client: its, since, ownerId } = holder;
    // A client of this process with the same label: its name would tell no more than "this process".
    if (its && its.host === client.host && its.pid === client.pid && its.label === client.label)
      return THIS_PROCESS;
    const time = since
      ? ` for ${Math.max(0, Math.round((runner.clock.wall() - since.getTime()) / 1_000))} s`
      : "";
    return `${its ? `${its.label} (pid ${its.pid})` : `owner ${ownerId}`}${time}`;
  };
  return async (locks) => {
    if (isAsking) return undefined;
    isAsking = true;
    try {
      return foremost(await runner.withTimeout("", Promise.all(locks.map(ask)), SOON));
    } catch {
      return undefined;
    } finally {
      isAsking = false;
    }
  };
}
