/** Says who holds a lock, for the text of an error: soon, or not at all. */
import type { Clock } from "../base/clock.js";
import type { ClientInfo } from "../presence/told.js";
import type { Inspector } from "./inspector.js";

/** Milliseconds that the error waits for it. */
const SOON = 250;
const ITSELF = "this process itself";

export interface WhoHoldsOptions {
  readonly inspector: Inspector;
  readonly client: ClientInfo;
  readonly clock: Clock;
  /** The work, or UNAVAILABLE after `ms`. */
  readonly within: <T>(work: Promise<T>, ms: number) => Promise<T>;
}

/** Asks for one lock at a time: many calls that time out together are not to load a server that may be why. */
export function whoHolds({
  inspector,
  client,
  clock,
  within,
}: WhoHoldsOptions): (name: string, key: string) => Promise<string | undefined> {
  let isAsking = false;
  const ask = async (name: string, key: string) => {
    const holder = await within(inspector.holder(name, key), SOON);
    if (!holder) return undefined;
    const { client: its, since, ownerId } = holder;
    // Another client of this process has a label of its own, or tells no more than that.
    if (its && its.host === client.host && its.pid === client.pid && its.label === client.label)
      return ITSELF;
    const time = since ? ` for ${Math.max(0, Math.round((clock.wall() - since.getTime()) / 1_000))} s` : "";
    return `${its ? `${its.label} (pid ${its.pid})` : `owner ${ownerId}`}${time}`;
  };
  return async (name, key) => {
    if (isAsking) return undefined;
    isAsking = true;
    try {
      return await ask(name, key);
    } catch {
      return undefined;
    } finally {
      isAsking = false;
    }
  };
}
