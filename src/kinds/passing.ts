/** The keys, arguments and reply that all hand-over scripts share. */
import { tombstone } from "../base/names.js";
import { OTHERS_FIRST, type Passed, type Successor } from "../engine/acquisition.js";
import { type Backend, DONE, TOMBSTONE_TTL } from "../locks/backend.js";
import type { ReleaseKeys } from "./calls.js";

interface PassKeys extends ReleaseKeys {
  readonly successorTombstone: string;
}

interface PassArguments {
  readonly owner: string;
  readonly successor: string;
  readonly lease: number;
  readonly ask: number;
  readonly own: number;
  readonly tombstoneTtl: number;
  readonly publish: string;
}

export function passKeys({ key, channel }: Backend, wireId: string, successor: Successor): PassKeys {
  return {
    lock: key,
    channel,
    tombstone: tombstone(key, wireId),
    successorTombstone: tombstone(key, successor.wireId),
  };
}

export function passArguments(publish: string, wireId: string, successor: Successor): PassArguments {
  const { lease, own } = successor;
  return {
    owner: wireId,
    successor: successor.wireId,
    lease,
    ask: askOf(own),
    own: Math.max(own ?? 0, 0),
    tombstoneTtl: TOMBSTONE_TTL,
    publish,
  };
}

function askOf(own: number | undefined): number {
  if (own === undefined) return 0;
  return own === OTHERS_FIRST ? 2 : 1;
}

/** Reads `{word, granted, others}`. The fenced kind reads its token by itself. */
export function readPassed(reply: readonly unknown[]): Passed {
  const [word = 0, granted = 0, others = 0] = reply.map(Number);
  return { word, granted: granted === DONE, others };
}
