/** One client of a simulation: a process with a real `LockClient` for each server, and what its users have of it. */
import { AsyncResource } from "node:async_hooks";
import { INTERNALS } from "../../src/client-options.js";
import { MemoryConnection } from "../../src/entries/testing/memory-connection.js";
import type { MemoryServer } from "../../src/entries/testing/memory-server.js";
import {
  type Hold,
  LockClient,
  type LockClientOptions,
  MultiLock,
  type Owner,
  type RedisConnection,
  RedLock,
} from "../../src/index.js";
import { Random } from "../entries/fidelity/random.js";
import { ClientNetwork } from "./network.js";
import type { Schedule, Take } from "./schedule.js";
import { Machine, type World } from "./world.js";

export const NAME = "job";
/** Of the locks that a MultiLock has as members. */
export const MEMBERS = ["a", "b", "c"] as const;

/** What locks of all kinds have in common here. */
type Face = Pick<ReturnType<LockClient["getLock"]>, "lock" | "tryLock">;

export class Process {
  readonly index: number;
  readonly machine: Machine;
  readonly networks: readonly ClientNetwork[];
  readonly clients: readonly LockClient[];
  /** By their numbers. */
  readonly #owners = new Map<number, Owner>();

  constructor(world: World, servers: readonly MemoryServer[], schedule: Schedule, index: number) {
    const { seed, rates, weather, watchdogTimeout, pollCap, commandTimeout } = schedule;
    this.index = index;
    this.machine = new Machine(world, rates[index] as number);
    this.networks = servers.map((server, i) => {
      const random = new Random(seed ^ Math.imul(0x85ebca6b, 1 + index + 16 * i));
      return new ClientNetwork(world, server, this.machine, random, weather);
    });
    const random = new Random(seed ^ Math.imul(0xc2b2ae35, 1 + index));
    const internals = { clock: this.machine.clock, random: () => random.next() };
    const options = { watchdogTimeout, pollCap, commandTimeout, presence: false, [INTERNALS]: internals };
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

  /** Runs a task of its users, in an async context of its own. */
  run(task: () => Promise<void>): Promise<void> {
    return new AsyncResource("task").runInAsyncScope(task);
  }

  owner(number: number): Owner {
    const known = this.#owners.get(number) ?? this.client.newOwner();
    this.#owners.set(number, known);
    return known;
  }

  face({ kind }: Schedule, { shared, members = [] }: Take): Face {
    const { client } = this;
    if (kind === "lock") return client.getLock(NAME);
    if (kind === "fair") return client.getFairLock(NAME);
    if (kind === "fenced") return client.getFencedLock(NAME);
    if (kind === "multi") return new MultiLock(...members.map((i) => client.getLock(MEMBERS[i] as string)));
    if (kind === "red") return new RedLock(...this.clients.map((each) => each.getLock(NAME)));
    const lock = client.getReadWriteLock(NAME);
    return shared ? lock.readLock() : lock.writeLock();
  }

  /** Takes a permit of a semaphore, as the step says. */
  async permit(step: Take, signal: AbortSignal | undefined): Promise<boolean> {
    const semaphore = this.client.getSemaphore(NAME);
    if (step.wait !== undefined) return semaphore.tryAcquire(1, step.wait, { signal });
    await semaphore.acquire(1, { signal });
    return true;
  }

  /** Takes one that has a lease; resolves with its id. */
  async lease({ wait, lease }: Take, signal: AbortSignal | undefined): Promise<string | null> {
    const semaphore = this.client.getPermitExpirableSemaphore(NAME);
    return wait === undefined
      ? semaphore.acquire({ lease, signal })
      : semaphore.tryAcquire(wait, lease, { signal });
  }

  /** Takes a lock as the step says; undefined if it stayed with others. */
  async lock(schedule: Schedule, step: Take, signal: AbortSignal | undefined): Promise<Hold | undefined> {
    const { owner, wait, lease } = step;
    const face = this.face(schedule, step);
    const options = { signal, owner: owner === undefined ? undefined : this.owner(owner) };
    if (wait === 0 || step.at % 2 === 0)
      return (await face.tryLock(wait ?? Number.POSITIVE_INFINITY, lease, options)) ?? undefined;
    return face.lock({ wait, lease, ...options });
  }
}
