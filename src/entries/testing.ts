/**
 * Locks in tests, without Redis: the real client runs its real scripts on a server in memory, whose clock a test moves.
 * No real time passes, and none is needed: timers and clocks that a test framework has replaced stay out of it.
 */
import { setTimeout } from "../base/platform.js";
import { checkClientOptions, INTERNALS } from "../client-options.js";
import { LockClient, type LockClientOptions, type LossReason, type RedisConnection } from "../index.js";
import type { TestClock } from "./testing/clock.js";
import { Link } from "./testing/link.js";
import { MemoryConnection } from "./testing/memory-connection.js";
import { MemoryServer } from "./testing/memory-server.js";

/** A server in memory, empty at first. Its clients exclude each other and share its clock. */
export interface TestServer {
  /** Epoch milliseconds of its clock: the time at which the server was made, and what was advanced since. */
  readonly now: number;
}

/** Options of {@link createTestClient}. */
export interface TestClientOptions extends LockClientOptions {
  /** The server that the client belongs to. Default a server of its own. */
  server?: TestServer | undefined;
}

/** A client in a test, and what can happen to it. */
export interface TestClient {
  /** The real client, but for its server and its clock. Close it as any other. */
  readonly client: LockClient;
  /**
   * Lets milliseconds pass for the server and all its clients: leases are renewed or end, waits time out. Resolves when
   * all is done that this sets off, except what waits for files, sockets or real timers. Calls take effect one after
   * the other.
   * @throws RangeError unless `ms` is a finite number of at least 0
   */
  advance(ms: number): Promise<void>;
  /**
   * Ends every hold of this client at once, and the permits that it keeps, as lost for that reason. The client gives
   * back what the server has of them. Resolves when all holders know. As after any loss, `unlock()` of such a hold then
   * rejects LOCK_LOST. For "closed" it resolves, as after `close()`.
   * @throws TypeError for an unknown reason
   */
  loseAll(reason: LossReason): Promise<void>;
  /**
   * Cuts this client off from its server, from now on until `ms` milliseconds have been advanced. The server goes on
   * for the others. Answers that are on their way do not arrive.
   * @throws RangeError unless `ms` is a finite number above 0
   */
  outage(ms: number): Promise<void>;
  /** Resolves when all is done that needs no time to pass. Never rejects. */
  settle(): Promise<void>;
}

class MemoryTestServer implements TestServer {
  readonly memory: MemoryServer = new MemoryServer();

  get now(): number {
    return this.memory.clock.wall();
  }
}

/** Milliseconds of real time after which a test that lets none pass may have forgotten to. */
const STILL = 2_000;
let isTold = false;

/** Returns a function that warns, once in a process, if the clock stands still so long from then on and something waits for it. */
function watchOf(clock: TestClock, isAwaited: () => boolean): () => void {
  let isArmed = false;
  return function watch() {
    if (isArmed || isTold) return;
    isArmed = true;
    const at = clock.mono();
    const look = () => {
      isArmed = false;
      if (isTold || !isAwaited()) return;
      if (clock.mono() !== at) return watch();
      isTold = true;
      process.emitWarning(
        "holdfast/testing: time stands still while a call waits, or Redis is away: let it pass by advance(ms).",
        { type: "HoldfastWarning", code: "HOLDFAST_TIME_STANDS_STILL" },
      );
    };
    setTimeout(look, STILL).unref();
  };
}

const REASONS: readonly LossReason[] = ["forced", "taken", "expired", "unreachable", "closed"];

/**
 * A server for several clients. It holds nothing but memory, so nobody has to close it.
 * @example
 * const server = createTestServer();
 * const [one, other] = [createTestClient({ server }), createTestClient({ server })];
 */
export function createTestServer(): TestServer {
  return new MemoryTestServer();
}

/**
 * A client on a server in memory, connected already. It takes the options of `new LockClient()` and `server`.
 * @throws TypeError, RangeError for wrong options
 * @example
 * const test = createTestClient();
 * const hold = await test.client.getLock("stock:42").lock({ lease: 1_000 });
 * await test.advance(1_000);
 * console.assert(!hold.isHeld);
 */
export function createTestClient(options: TestClientOptions = {}): TestClient {
  // What has no options of its own would be spread to none, whatever it is.
  if (!hasOptions(options)) checkClientOptions(options, "createTestClient");
  const { server = createTestServer(), ...clientOptions } = options;
  if (!(server instanceof MemoryTestServer)) {
    throw new TypeError(
      "createTestClient: server must be one that createTestServer() of the same module gave",
    );
  }
  const { memory } = server;
  const link = new Link(memory);
  let loseHolds: ((reason: LossReason) => void) | undefined;
  const onMade = (lose: (reason: LossReason) => void) => {
    loseHolds = lose;
  };
  const internals = { [INTERNALS]: { clock: memory.clock, exactTimers: true, onMade } };
  const connection = new MemoryConnection(link, {}, true) as unknown as RedisConnection;
  const client = new LockClient(connection, { ...clientOptions, ...internals } as LockClientOptions);
  let outages = 0;
  const watch = watchOf(memory.clock, () => outages + client.stats().waiting > 0);
  client.on("waiting", watch);
  return {
    client,
    async advance(ms) {
      checkTime(ms, "advance", 0);
      await memory.advance(ms);
    },
    async loseAll(reason) {
      if (!REASONS.includes(reason)) throw new TypeError(`loseAll: reason must be ${REASONS.join(", ")}`);
      loseHolds?.(reason);
      await memory.rest();
    },
    async outage(ms) {
      checkTime(ms, "outage", Number.MIN_VALUE);
      if (outages++ === 0) link.cut();
      memory.clock.after(ms, () => {
        if (--outages === 0) link.mend();
      });
      watch();
      await memory.rest();
    },
    settle: () => memory.settle(),
  };
}

function hasOptions(value: unknown): boolean {
  return typeof value === "object" && !Array.isArray(value) && Object.keys(value ?? {}).length > 0;
}

function checkTime(ms: unknown, what: string, least: number): void {
  if (typeof ms === "number" && Number.isFinite(ms) && ms >= least) return;
  const bound = least > 0 ? "above 0" : "of 0 or more";
  throw new RangeError(`${what}: ms must be a number of milliseconds ${bound}`);
}
