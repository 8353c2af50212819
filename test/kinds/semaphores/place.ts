/**
 * Clients use a semaphore, expirable permits or a latch of one name here, in the virtual-time place of locks. A test
 * sees its numbers and leases. Tests on real servers use the same faces (helpers.ts).
 */
import { expect, test as plainTest } from "vitest";
import { latchChannel, permitLeases, semaphoreChannel } from "../../../src/base/names.js";
import type {
  CountDownLatch,
  LockClientOptions,
  PermitExpirableSemaphore,
  Semaphore,
} from "../../../src/index.js";
import { NAME, openVirtual, type Party, PLAIN, type VirtualPlace } from "../../support/place/index.js";
import { isTrace } from "../../support/place/place.js";
import { expectNothingLeft } from "../../support/place/virtual.js";

/** Milliseconds, longer than any test, so that a waiter that only this time would wake fails. */
export const NEVER = 600_000;
/** The settings of clients, unless a test says otherwise; only a message wakes their waiters. */
export const SETTINGS: Readonly<Record<"pollCap" | "commandTimeout" | "watchdogTimeout", number>> = {
  pollCap: NEVER,
  commandTimeout: 1_000,
  watchdogTimeout: 9_000,
};
/** An id, in the user's form, that no permit has. */
export const UNKNOWN = "00112233445566778899aabbccddeeff";
/** Matches a permit's id. */
export const ID: unknown = expect.stringMatching(/^[0-9a-f]{32}$/);
export const LEASES: string = permitLeases(NAME);

/** A message that is sent to see who listens. */
const LOOK = "?";

/** The number in Redis, null if there is none, and how many permits with an id are in use. */
export type Counts = readonly [value: string | null, used: number];

/** What client `i` calls, the first one by default, and what others do past all clients. */
export interface Faces {
  readonly name: string;
  semaphore(i?: number): Semaphore;
  permits(i?: number): PermitExpirableSemaphore;
  latch(i?: number): CountDownLatch;
  call(command: string, ...args: readonly (string | number)[]): Promise<unknown>;
  /** Fails unless all keys besides the number and the leases are markers, which lapse within a minute. */
  counts(): Promise<Counts>;
}

export interface Numbers extends VirtualPlace, Faces {
  /** Client `i`'s party: 0 is `a`, 1 is `b`, and each further one is made when it is first asked for. */
  of(i: number): Party;
  readonly parties: readonly Party[];
  /** Adds a permit in use for these milliseconds, as Redisson would. */
  enter(id: string, ms: number): Promise<void>;
  /** The milliseconds that each permit in use has left, by its id. */
  left(): Record<string, number>;
  /** The messages that were sent so far, on both channels. */
  readonly heard: string[];
  /** The number of clients that listen for messages. */
  listeners(): number;
  /** The result of a call, which must be there without any time passing. */
  soon<T>(call: Promise<T>): Promise<T>;
}

/** The binary member of a permit's id, with one character for each byte, as the server in memory has it. */
const member = (id: string): string => Buffer.from(id, "hex").toString("latin1");

function openNumbers(options: LockClientOptions = {}): Numbers {
  const place = openVirtual(PLAIN, { ...SETTINGS, ...options });
  const { server, settle } = place;
  const parties = [place.a, place.b];
  const of = (i: number): Party => {
    parties[i] ??= place.party();
    return parties[i];
  };
  const heard: string[] = [];
  const channels = [semaphoreChannel(NAME), latchChannel(NAME, false)];
  for (const channel of channels)
    server.subscribe("publish", channel, (_, message) => void (message !== LOOK && heard.push(message)));
  const leases = () => [...(server.keys.get(LEASES, "zset") ?? [])];
  return {
    ...place,
    name: NAME,
    of,
    parties,
    semaphore: (i = 0) => of(i).client.getSemaphore(NAME),
    permits: (i = 0) => of(i).client.getPermitExpirableSemaphore(NAME),
    latch: (i = 0) => of(i).client.getCountDownLatch(NAME),
    call: async (...command) => server.execute(command.map(String)),
    enter: async (id, ms) => {
      server.execute(["ZADD", LEASES, String(server.clock.wall() + ms), member(id)]);
    },
    async counts() {
      for (const key of server.names()) {
        const ttl = server.ttl(key);
        if (key === NAME) expect(ttl).toBe(-1);
        if (key === NAME || key === LEASES) continue;
        expect([isTrace(key), ttl > 0, ttl <= 60_000], key).toEqual([true, true, true]);
      }
      return [server.keys.get(NAME, "string") ?? null, leases().length];
    },
    left: () =>
      Object.fromEntries(
        leases().map(([id, end]) => [Buffer.from(id, "latin1").toString("hex"), end - server.clock.wall()]),
      ),
    heard,
    // Each listens to one of the channels, which this place does, too.
    listeners: () =>
      channels.reduce((sum, channel) => sum + Number(server.execute(["PUBLISH", channel, LOOK])) - 1, 0),
    async soon(call) {
      let isOver = false;
      const over = () => {
        isOver = true;
      };
      call.then(over, over);
      await settle();
      expect(isOver, "the call is over").toBe(true);
      return call;
    },
  };
}

type Test = (title: string, body: (place: Numbers) => unknown) => void;

const testWith =
  (options?: LockClientOptions): Test =>
  (title, body) =>
    plainTest(title, async () => {
      const place = openNumbers(options);
      await body(place);
      // A channel stays subscribed for a moment: who waits again at once need not ask again.
      await place.pass(100);
      expect(place.listeners()).toBe(0);
      const closing = Promise.all(place.parties.map((party) => party.close({ timeout: 0 })));
      await place.settle();
      for (const key of [NAME, LEASES]) place.server.delete(key);
      await expectNothingLeft(place);
      await closing;
    });

/**
 * Vitest's `test`, whose function gets two clients in virtual time, and as many more as it uses; `with` opens them with
 * options. In the end nobody may wait, and a minute after the clients were closed nothing may be left besides the number
 * and the leases.
 */
export const test: Test & { with(options: LockClientOptions): Test } = Object.assign(testWith(), {
  with: testWith,
});
