/** Whether the masters of a RedLock are connected, and are different servers: two votes of one server would be one. */
import { UnsupportedServerError } from "../base/errors.js";
import { setImmediate } from "../base/platform.js";
import { quietly } from "../base/work.js";
import { isSpared, isUnresponsive, type Member, type Members } from "./members.js";
import { fulfilled, rejected, settled } from "./settled.js";

export class Masters {
  readonly #members: Members;
  /** By the index of the member. */
  readonly #runIds: (string | undefined)[] = [];
  /** Two members are known to be on one server. */
  #isTwice = false;
  readonly #asked = new Set<Member>();
  /** Members whose run id a call has waited for. */
  readonly #awaited = new Set<Member>();

  constructor(members: Members) {
    this.#members = members;
  }

  /**
   * Resolves when the masters are connected, or have failed to connect; undefined if there is nothing to wait for. A first
   * connection may take longer than an answer, so the first round waits for it: for a majority of masters as long as for a
   * command, for the others `grace` milliseconds more. If a master seems to be away, the replies that have arrived are read
   * first: after a stall of this process every server looks silent.
   */
  connecting(grace: number): Promise<void> | undefined {
    const { all: members, quorum } = this.#members;
    const fresh = members.filter(({ env }) => env.masters.isFresh);
    const late = fresh.filter(({ env }) => !env.masters.awaited);
    if (late.length === 0 && members.length - fresh.length >= quorum) {
      return members.some(isSpared) ? readArrived() : undefined;
    }
    return this.#arrive(fresh, late, grace);
  }

  /**
   * Asks the servers for their run ids, as far as these are not known. Resolves when the servers that had never been asked
   * have answered, after `grace` milliseconds at most; undefined if there is nothing to wait for.
   */
  introduce(grace: number): Promise<void> | undefined {
    if (this.#asked.size === this.#members.all.length) return undefined;
    const first: Promise<unknown>[] = [];
    for (const [i, member] of this.#members.all.entries()) {
      if (this.#asked.has(member) || member.env.runner.servers.isAway(member.backend.key)) continue;
      this.#asked.add(member);
      const told = member.env.masters.runIdOf(member.backend.key).then((runId) => {
        this.#runIds[i] = runId;
        const known = this.#runIds.filter((id) => id !== undefined);
        this.#isTwice = new Set(known).size < known.length;
      });
      told.catch(() => this.#asked.delete(member));
      if (this.#awaited.has(member) || isUnresponsive(member)) continue;
      this.#awaited.add(member);
      first.push(told);
    }
    if (first.length === 0) return undefined;
    const { runner, name } = this.#members;
    return quietly(runner.withTimeout(name, Promise.allSettled(first), grace));
  }

  /** @throws UNSUPPORTED if two members are known to be on one server */
  assertDistinct(): void {
    if (!this.#isTwice) return;
    throw new UnsupportedServerError(
      this.#members.name,
      "two members are on one server",
      undefined,
      "give each member of a RedLock a master of its own",
    );
  }

  async #arrive(fresh: readonly Member[], late: readonly Member[], grace: number): Promise<void> {
    const { runner, all: members, name, quorum } = this.#members;
    const arrivals = members.map((member) =>
      fresh.includes(member) ? member.env.masters.arrival() : Promise.resolve(),
    );
    const hopeless = members.length - quorum + 1;
    await settled(arrivals, (so) => fulfilled(so).length >= quorum || rejected(so).length >= hopeless);
    if (late.length === 0) return;
    await quietly(runner.withTimeout(name, Promise.allSettled(arrivals), grace));
    for (const { env } of late) env.masters.awaited = true;
  }
}

function readArrived(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
