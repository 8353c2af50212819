/** RedLocks in virtual time: masters of which a row makes some silent, and on which a stranger has the lock. */
import type { RedLock } from "../../../src/index.js";
import {
  type Kind,
  NAME,
  RED,
  type RowOptions,
  row,
  STRANGER,
  type VirtualPlace,
} from "../../support/place/index.js";

/** A lease that outlives every row; a master then has all of `commandTimeout`, three seconds, for its answer. */
export const LEASE = 600_000;
export const ANSWER = 3_000;

export const FIVE: Kind = { ...RED, name: "RedLock of five", members: 5, servers: 5 };

export interface Masters extends VirtualPlace {
  /** The RedLocks of both parties. */
  readonly red: RedLock;
  readonly theirs: RedLock;
  /** Gives the lock to a stranger on these masters, whoever has it there. */
  occupy(...on: readonly number[]): void;
  /** Takes the lock from whoever has it on these masters, and tells waiters so. */
  vacate(...on: readonly number[]): void;
  /** The masters on which somebody has the lock. */
  heldOn(): number[];
}

function mastersOf(place: VirtualPlace): Masters {
  const { servers, lock, twin } = place;
  const at = (on: readonly number[]) => servers.filter((_, i) => on.includes(i));
  return {
    ...place,
    red: lock as unknown as RedLock,
    theirs: twin as unknown as RedLock,
    occupy(...on) {
      for (const server of at(on)) server.give({ [STRANGER]: "1" }, LEASE);
    },
    vacate(...on) {
      for (const server of at(on)) {
        server.delete();
        server.execute(["PUBLISH", `redisson_lock__channel:{${NAME}}`, "0"]);
      }
    },
    heldOn: () => servers.flatMap((server, i) => (Object.keys(server.hash()).length > 0 ? [i] : [])),
  };
}

type Body = (place: Masters) => unknown;

/** A row on a RedLock over three masters, or over as many as `kind` has. */
export function redRow(title: string, body: Body, client: RowOptions["client"] = {}, kind: Kind = RED): void {
  row(title, { kinds: [kind], client }, async (place) => {
    const masters = mastersOf(place);
    // The extra work of a first call is done.
    for (const lock of [masters.red, masters.theirs]) await (await lock.lock()).unlock();
    await place.settle();
    for (const server of place.servers) server.ran.length = 0;
    await body(masters);
  });
}
