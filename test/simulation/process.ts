/** One client of a simulation: a process with a real `LockClient` for each server, and the holds of its users. */
import { AsyncResource } from "node:async_hooks";
import { INTERNALS } from "../../src/client-options.js";
import { MemoryConnection } from "../../src/entries/testing/memory-connection.js";
import type { MemoryServer } from "../../src/entries/testing/memory-server.js";
import {
  type FencedHold,
  type Hold,
  LockClient,
  type LockClientOptions,
  MultiLock,
  type Owner,
  type RedisConnection,
  RedLock,
} from "../../src/index.js";
import { Random } from "../support/random.js";
import { ClientNetwork } from "./network.js";
import { injected } from "./planting.js";
import type { Schedule, Take } from "./schedule.js";
import { Machine, type World } from "./world.js";

export const NAME = "job";
/** The names of the locks that a MultiLock can have as members. */
export const MEMBERS = ["a", "b", "c"] as const;

/** A call that takes something. Times are those of the world. */
export interface Call {
  readonly step: Take;
  readonly process: Process;
  /** The owner; calls of one owner nest. */
  readonly whose: string;
  readonly invoked: number;
  settled?: number;
  outcome?: "granted" | "refused" | "failed";
  /** The code of its error. */
  code?: string | undefined;
}

/** A granted hold or permit, until it is given back. */
export interface Stay {
  readonly call: Call;
  readonly granted: number;
  /** The hold, for a lock. */
  readonly hold?: Hold | undefined;
  readonly giveBack: () => Promise<void>;
  /** The fencing token, if there is one. */
  readonly token?: bigint | undefined;
  /** Whether the process may believe that it has it. */
  readonly isHeld: () => boolean;
  /** When its process was last seen to believe that. */
  heldUntil: number;
  /** When the process began to give it back. */
  leftAt?: number;
  /** When that call has settled; `isDone`: without an error. */
  overAt?: number;
  isDone?: boolean;
}

/** The methods of locks of all kinds that are used here. */
type Face = Pick<ReturnType<LockClient["getLock"]>, "lock" | "tryLock" | "forceUnlock">;

export class Process {
  readonly index: number;
  readonly machine: Machine;
  readonly networks: readonly ClientNetwork[];
  readonly clients: readonly LockClient[];
  readonly #world: World;
  /** The owners by their numbers. */
  readonly #owners = new Map<number, Owner>();

  constructor(world: World, servers: readonly MemoryServer[], schedule: Schedule, index: number) {
    const { seed, rates, weather, watchdogTimeout, pollCap, commandTimeout } = schedule;
    this.index = index;
    this.#world = world;
    this.machine = new Machine(world, rates[index] as number);
    this.networks = servers.map((server, i) => {
      const random = new Random(seed ^ Math.imul(0x85ebca6b, 1 + index + 16 * i));
      return new ClientNetwork(world, server, this.machine, random, weather);
    });
    const random = new Random(seed ^ Math.imul(0xc2b2ae35, 1 + index));
    const internals = { clock: injected.clock(this.machine.clock), random: () => random.next() };
    const options = {
      ...{ watchdogTimeout, pollCap, commandTimeout, presence: false, [INTERNALS]: internals },
      ...injected.options,
    };
    this.clients = this.networks.map(
      ({ link }) =>
        new LockClient(
          new MemoryConnection(link, {}, true) as unknown as RedisConnection,
          options as LockClientOptions,
        ),
    );
  }

  get client(): LockClient {
    return this.clients[0] as LockClient;
  }

  /** Runs a task of a user, in an async context of its own. */
  run(task: () => Promise<void>): Promise<void> {
    return new AsyncResource("task").runInAsyncScope(task);
  }

  owner(number: number): Owner {
    const known = this.#owners.get(number) ?? this.client.newOwner();
    this.#owners.set(number, known);
    return known;
  }

  /** The grant for the call of a step; undefined if it was not granted. */
  async take(schedule: Schedule, call: Call): Promise<Stay | undefined> {
    const { step } = call;
    const { clock } = this.machine;
    const controller = step.abort === undefined ? undefined : new AbortController();
    if (controller) clock.after(step.abort as number, () => controller.abort());
    if (schedule.kind === "semaphore") return this.#permit(call, controller?.signal);
    if (schedule.kind === "permits") return this.#lease(call, controller?.signal);
    const hold = await this.#lock(schedule, step, controller?.signal);
    if (!hold) return undefined;
    const { token } = hold as Partial<FencedHold>;
    return this.#stay(
      call,
      () => hold.isHeld,
      () => hold.unlock(),
      { hold, token },
    );
  }

  #stay(call: Call, isHeld: () => boolean, giveBack: () => Promise<void>, more?: Partial<Stay>): Stay {
    const { now } = this.#world;
    return { call, granted: now, heldUntil: now, isHeld, giveBack, ...more };
  }

  async #permit(call: Call, signal: AbortSignal | undefined): Promise<Stay | undefined> {
    const semaphore = this.client.getSemaphore(NAME);
    const { wait } = call.step;
    if (wait === undefined) await semaphore.acquire(1, { signal });
    else if (!(await semaphore.tryAcquire(1, wait, { signal }))) return undefined;
    return this.#stay(
      call,
      () => true,
      () => semaphore.release(),
    );
  }

  async #lease(call: Call, signal: AbortSignal | undefined): Promise<Stay | undefined> {
    const semaphore = this.client.getPermitExpirableSemaphore(NAME);
    const { wait, lease } = call.step;
    const begun = this.machine.clock.mono();
    const id =
      wait === undefined
        ? await semaphore.acquire({ lease, signal })
        : await semaphore.tryAcquire(wait, lease, { signal });
    if (id === null) return undefined;
    // Counted from the call, because it is not known when the command was sent.
    const until = lease === undefined ? Number.POSITIVE_INFINITY : begun + lease * 0.99 - 2;
    return this.#stay(call, this.#keeps(id, until), () => semaphore.release(id));
  }

  /**
   * Whether a permit is kept: until its lease is over, or the event `lost`; a stalled process cannot be told of a loss.
   */
  #keeps(id: string, until: number): () => boolean {
    const { machine, client } = this;
    let isLost = false;
    client.on("lost", ({ permitId }) => {
      isLost ||= permitId === id;
    });
    const { stalls } = machine;
    const canTell = () => until < Number.POSITIVE_INFINITY || machine.stalls === stalls;
    return () => !isLost && machine.clock.mono() < until && canTell();
  }

  /** Takes the lock away from whoever has it. */
  async force(schedule: Schedule, step: { readonly at: number }): Promise<void> {
    await this.#face(schedule, { shared: step.at % 2 === 0, members: [0, 1, 2] }).forceUnlock();
  }

  #face({ kind }: Schedule, { shared, members = [] }: Pick<Take, "shared" | "members">): Face {
    const { client } = this;
    if (kind === "lock") return client.getLock(NAME);
    if (kind === "fair") return client.getFairLock(NAME);
    if (kind === "fenced") return client.getFencedLock(NAME);
    if (kind === "multi") return new MultiLock(...members.map((i) => client.getLock(MEMBERS[i] as string)));
    if (kind === "red") return new RedLock(...this.clients.map((each) => each.getLock(NAME)));
    const lock = client.getReadWriteLock(NAME);
    return shared ? lock.readLock() : lock.writeLock();
  }

  /** Takes a lock as the step says; undefined if it was not granted. */
  async #lock(schedule: Schedule, step: Take, signal: AbortSignal | undefined): Promise<Hold | undefined> {
    const { owner, wait, lease } = step;
    const face = this.#face(schedule, step);
    const options = { signal, owner: owner === undefined ? undefined : this.owner(owner) };
    const isTry = wait === 0 || step.at % 2 === 0;
    const granting = isTry
      ? face.tryLock(wait ?? Number.POSITIVE_INFINITY, lease, options)
      : face.lock({ wait, lease, ...options });
    return (await injected.granted(granting)) ?? undefined;
  }
}
