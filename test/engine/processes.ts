/**
 * Several processes that share one lock, in virtual time. Each has a real engine, queue and policy, and the real
 * functions that a lock calls when it is given back. Simulated are the server, its messages and the latency of both.
 */
import { RedisUnavailableError } from "../../src/base/errors.js";
import { Acquisition, type Attempt, type Listener, type QueueTraits } from "../../src/engine/acquisition.js";
import type { Engine } from "../../src/engine/engine.js";
import type { Backend } from "../../src/locks/backend.js";
import type { Env } from "../../src/locks/env.js";
import { concludeHandoff, type Handoff, handoffOf } from "../../src/locks/handoff.js";
import { LocalSuccessor } from "../../src/locks/successor.js";
import { VirtualClock } from "../support/virtual-clock.js";

export type EngineClass = new (...args: ConstructorParameters<typeof Engine>) => Engine;

/** All times are milliseconds. */
export interface Load {
  /** For each process, the number of workers that take the lock in a loop. */
  readonly workers: readonly number[];
  /** How long each hold lasts. */
  readonly hold: number;
  /** The shortest latency of a command, an answer or a message; up to half as much is added at random. */
  readonly latency: number;
  /** The play ends after `runs` runs or after `time`, because one process alone makes a single run. */
  readonly runs: number;
  readonly time: number;
  readonly seed: number;
  /** The server does not count the listeners of an offer, because they listen at a replica. */
  readonly uncounted?: boolean;
  /** A client listens that never takes the lock. */
  readonly stranger?: boolean;
}

/** Consecutive holds of one process, with no hold of another process in between. */
export interface Run {
  readonly process: number;
  readonly from: number;
  to: number;
}

export interface Outcome {
  /** The number of holds of each process. */
  readonly holds: readonly number[];
  readonly runs: readonly Run[];
  /** The longest time for which the lock was free while a call waited. */
  readonly longestFree: number;
}

/** A hold that lasts longer than any load. */
const LEASE = 1_000_000;
const WAIT = Number.POSITIVE_INFINITY;
const TRAITS: QueueTraits = { serverQueued: false, advertised: false, shared: false, handoff: true };
const BACKEND = {
  key: "lock",
  channel: "channel",
  side: "only",
  queueName: "lock",
  traits: TRAITS,
} as Backend;

/** The server: the holder of the lock, and the listeners. */
class Server {
  readonly clock = new VirtualClock();
  readonly listeners = new Map<Process, Listener>();
  readonly #load: Load;
  readonly #random: () => number;
  readonly #runs: Run[] = [];
  readonly #holds: number[];
  #holder: string | undefined;
  #freeSince = 0;
  #longestFree = 0;

  constructor(load: Load) {
    this.#load = load;
    this.#random = randomNumbers(load.seed);
    this.#holds = load.workers.map(() => 0);
  }

  get outcome(): Outcome {
    return { holds: this.#holds, runs: this.#runs, longestFree: this.#longestFree };
  }

  get isDone(): boolean {
    return this.#runs.length >= this.#load.runs || this.clock.mono() > this.#load.time;
  }

  /** Resolves when a command, or its answer, has arrived. */
  way(): Promise<void> {
    const ms = this.#load.latency * (1 + this.#random() / 2);
    return new Promise((resolve) => this.clock.after(ms, resolve));
  }

  take(process: number, wireId: string): boolean {
    if (this.#holder !== undefined) return false;
    const now = this.clock.mono();
    this.#longestFree = Math.max(this.#longestFree, now - this.#freeSince);
    this.#holder = wireId;
    this.#holds[process] = (this.#holds[process] as number) + 1;
    const last = this.#runs.at(-1);
    if (last?.process !== process) this.#runs.push({ process, from: now, to: now });
    return true;
  }

  giveBack(wireId: string): void {
    if (this.#holder !== wireId) throw new Error(`${wireId} gives back what ${this.#holder} has`);
    const now = this.clock.mono();
    this.#holder = undefined;
    this.#freeSince = now;
    const last = this.#runs.at(-1);
    if (last) last.to = now;
  }

  /** Sends a message to all listeners, and returns how many the server counts. */
  publish(): number {
    for (const [process, listener] of this.listeners) {
      void this.way().then(() => {
        if (this.listeners.get(process) === listener) listener.hint();
      });
    }
    return (this.#load.uncounted ? 0 : this.listeners.size) + (this.#load.stranger ? 1 : 0);
  }
}

class Process {
  readonly engine: Engine;
  readonly server: Server;
  readonly number: number;
  /** The part of the environment that a lock uses when it is given back. */
  readonly env: Env;
  /** Whether the process listens; the server may not have confirmed that yet. */
  listening = false;
  #minted = 0;

  constructor(EngineOf: EngineClass, server: Server, number: number, random: () => number) {
    const { clock } = server;
    const unavailable = (lockName: string) => new RedisUnavailableError(lockName);
    const runner = { commandTimeout: LEASE, onReady: () => () => undefined, unavailable };
    this.engine = new EngineOf({ clock, runner, pollCap: LEASE, random, stir() {}, outside: (fn) => fn() });
    this.server = server;
    this.number = number;
    const router = { audience: () => (this.listening ? 1 : 0) };
    this.env = { engine: this.engine, router, lockKey: (key: string) => key } as unknown as Env;
  }

  mint(): string {
    return `${this.number}:${++this.#minted}`;
  }

  /** Takes the lock again and again, and gives it back. */
  async work(hold: number): Promise<void> {
    const { server, engine } = this;
    while (!server.isDone) {
      const call = new Call(this);
      await engine.acquire(call, WAIT, undefined);
      await new Promise<void>((resolve) => server.clock.after(hold, resolve));
      await this.#giveBack(call.wireId);
    }
  }

  async #giveBack(wireId: string): Promise<void> {
    const handoff = handoffOf(this.env, BACKEND);
    await this.server.way();
    const passed = this.#pass(wireId, handoff);
    await this.server.way();
    if (passed) handoff.successor?.settle(passed);
    concludeHandoff(this.env, handoff, false);
  }

  /** The server's part of the release command. */
  #pass(wireId: string, { successor }: Handoff) {
    this.server.giveBack(wireId);
    if (successor && !successor.gone) {
      const { own } = successor;
      const others = own === undefined ? 0 : Math.max(0, this.server.publish() - own);
      const granted = others === 0 && this.server.take(this.number, successor.wireId);
      return { word: 1, granted, others };
    }
    this.server.publish();
    return undefined;
  }
}

/** One call for the lock, as the locks make it. */
class Call extends Acquisition<string> {
  override readonly lockName: string = "lock";
  override readonly queueName: string = BACKEND.queueName;
  override readonly traits = TRAITS;
  override readonly away = false;
  readonly wireId: string;
  readonly #process: Process;
  #successor: LocalSuccessor | undefined;
  #inFlight = false;

  constructor(process: Process) {
    super();
    this.#process = process;
    this.wireId = process.mint();
  }

  override async attempt(): Promise<Attempt<string>> {
    const { server, number } = this.#process;
    const { wireId } = this;
    const successor = this.#successor;
    this.#successor = undefined;
    this.#inFlight = true;
    try {
      if (successor) {
        const acquired = await successor.acquired;
        return acquired.granted ? { granted: true, value: wireId, lease: LEASE } : acquired;
      }
      await server.way();
      const granted = server.take(number, wireId);
      await server.way();
      return granted ? { granted: true, value: wireId, lease: LEASE } : { granted: false, ttl: LEASE };
    } finally {
      this.#inFlight = false;
    }
  }

  override succeed(_lockKey: string, own: number | undefined): LocalSuccessor | undefined {
    if (this.over || this.#inFlight || this.#successor) return undefined;
    const sent = { mono: 0, wall: 0 };
    const { lockName, wireId } = this;
    this.#successor = new LocalSuccessor({
      unavailable: () => new RedisUnavailableError(lockName),
      wireId,
      lease: LEASE,
      own,
      gone: () => this.over,
      sent,
    });
    return this.#successor;
  }

  override listen(listener: Listener): () => void {
    const process = this.#process;
    const { server } = process;
    process.listening = true;
    let isOver = false;
    void server.way().then(async () => {
      if (isOver) return;
      server.listeners.set(process, listener);
      await server.way();
      if (!isOver) listener.hint();
    });
    return () => {
      isOver = true;
      process.listening = false;
      server.listeners.delete(process);
    };
  }

  override waiting(): void {
    // No listener is told of it here.
  }

  override ended(): void {
    // No call is given up here.
  }
}

/** @throws if all processes sleep while nobody has the lock */
export async function share(EngineOf: EngineClass, load: Load): Promise<Outcome> {
  const server = new Server(load);
  for (const [number, workers] of load.workers.entries()) {
    const process = new Process(EngineOf, server, number, randomNumbers(load.seed + number));
    for (let i = 0; i < workers; i++) void process.work(load.hold);
  }
  const { clock } = server;
  while (!server.isDone) {
    if (clock.nextAt > clock.mono() + LEASE / 2) throw new Error("everybody sleeps, and nobody has the lock");
    await clock.advance(Math.max(1, clock.nextAt - clock.mono()));
  }
  return server.outcome;
}

/** Numbers from 0 up to 1, the same for the same seed (xorshift). */
function randomNumbers(seed: number): () => number {
  let state = (seed * 2_654_435_761 + 1) | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}
