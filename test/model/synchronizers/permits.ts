/** Histories of a PermitExpirableSemaphore. */
import fc from "fast-check";
import type { PermitExpirableSemaphore } from "../../../src/index.js";
import type { FaultProxy } from "../../support/index.js";
import { pick } from "../scene.js";
import { WATCHDOG, type World } from "../world.js";
import { Course, compare, type Granted, type Synchronizer } from "./course.js";
import { type Permit, type PermitCall, PermitsModel } from "./permits-model.js";
import { type CommonStep, client, type Hasty, historiesOf, index, step } from "./steps.js";

type Step =
  | CommonStep
  | { readonly do: "acquire"; readonly client: number; readonly lease: number | undefined }
  | {
      readonly do: "tryAcquire";
      readonly client: number;
      readonly wait: number;
      readonly lease: number | undefined;
    }
  /** A permit that is held, or any permit. */
  | { readonly do: "release" | "tryRelease"; readonly client: number; readonly permit: number; any: boolean }
  | { readonly do: "update"; readonly client: number; readonly permit: number; readonly lease: number }
  | { readonly do: "add" | "set" | "trySet"; readonly client: number; readonly permits: number };

/** Renewals are due after a third of it, and may come a little earlier to share a command. */
const LEAST_KEPT = (WATCHDOG * 2) / 3;

class PermitsCourse extends Course<PermitCall, Step> {
  protected readonly model: PermitsModel;
  protected readonly lasting: readonly string[];
  protected readonly quick: readonly string[] = ["acquire", "tryAcquire", "release", "tryRelease", "add"];

  constructor(world: World, name: string, proxy: FaultProxy) {
    super(world, name, proxy);
    this.model = new PermitsModel(world);
    this.lasting = [name, `{${name}}:timeout`];
    this.listen((client, index) => {
      const lost = ({ permitId = "", reason = "" }) => {
        this.note(`client ${index} lost ${permitId}, ${reason}`, "lost");
        this.judge(() => this.model.lost(permitId));
      };
      client.on("lost", lost);
      return () => client.off("lost", lost);
    });
  }

  protected act(step: Step): boolean {
    const at = "client" in step ? this.open(step.client) : undefined;
    if (at === undefined) return false;
    const permits = this.#permits(at);
    switch (step.do) {
      case "acquire":
      case "tryAcquire":
        return this.#ask(at, step);
      case "release":
      case "tryRelease":
        return this.#release(step.do, at, this.#pick(step.permit, step.any, at));
      case "update": {
        const permit = this.#pick(step.permit, false, at);
        if (!permit) return false;
        const expected = this.model.update(permit, step.lease);
        const updating = permits.updateLeaseTime(permit.id, step.lease);
        return this.expect(`${at}.updateLeaseTime(${permit.id}, ${step.lease})`, updating, expected);
      }
      case "add":
        this.model.add(step.permits);
        return this.expect(`${at}.addPermits(${step.permits})`, permits.addPermits(step.permits), "ok");
      case "set":
        this.model.set(step.permits);
        return this.expect(`${at}.setPermits(${step.permits})`, permits.setPermits(step.permits), "ok");
      case "trySet": {
        const expected = this.model.trySet(step.permits);
        const setting = permits.trySetPermits(step.permits);
        return this.expect(`${at}.trySetPermits(${step.permits})`, setting, expected);
      }
      default:
        return false;
    }
  }

  #ask(at: number, step: Step & { do: "acquire" | "tryAcquire" }): true {
    const { lease } = step;
    const wait = step.do === "acquire" ? Number.POSITIVE_INFINITY : step.wait;
    const call = { client: at, lease, wait, begun: this.world.now, aborted: false, pending: true };
    const permits = this.#permits(at);
    this.call(
      `${step.do}(wait ${wait}, lease ${lease ?? "kept"})`,
      call,
      async (signal): Promise<Granted> => {
        if (step.do === "acquire") return permits.acquire({ lease, signal });
        return (await permits.tryAcquire(wait, lease, { signal })) ?? false;
      },
    );
    return true;
  }

  protected override granted(call: PermitCall, id: Granted): void {
    this.model.grant(call, String(id));
  }

  /** A permit for a client's call; one that the watchdog keeps is given back by its own client only. */
  #pick(place: number, any: boolean, at: number): Permit | undefined {
    const mine = ({ kept, client }: Permit) => !kept || client === at;
    const from = any ? this.model.permits : this.model.live;
    return pick(from.filter(mine), place);
  }

  #release(how: "release" | "tryRelease", at: number, permit: Permit | undefined): boolean {
    if (!permit) return false;
    // A second call of the same client shares the outcome of the first one.
    const shared = permit.releasing === at;
    const released = this.model.release(permit, at);
    const [yes, no] = how === "tryRelease" ? [true, false] : ["ok", "NOT_OWNER"];
    const expected = shared ? [yes, no] : [released ? yes : no];
    return this.expect(`${at}.${how}(${permit.id})`, this.#permits(at)[how](permit.id), ...expected);
  }

  protected vanish(): void {
    this.model.vanish();
  }

  protected override closing(client: number): void {
    this.model.close(client);
  }

  /** Gives the kept permits back, so that none is kept longer than its history. */
  protected override ending(): void {
    for (const permit of this.model.permits) {
      const { client, kept, state, announced } = permit;
      const isKept = kept && (state === "held" || !announced);
      if (isKept && this.open(client) === client) this.#release("release", client, permit);
    }
  }

  protected async differences(turn: number): Promise<string[]> {
    const { model, world, name } = this;
    const { server } = world;
    const [value, scores, now] = await Promise.all([
      server.get(name),
      server.zrangeBuffer(`{${name}}:timeout`, "0", "-1", "WITHSCORES"),
      world.serverTime(),
    ]);
    const terms = new Map<string, number>();
    for (let i = 0; i < scores.length; i += 2) {
      terms.set((scores[i] as Buffer).toString("hex"), Number(scores[i + 1]) - now);
    }
    const found = model.live.flatMap((permit) => this.#compareTerm(permit, terms.get(permit.id)));
    const lapsed = [...terms].filter(([, left]) => left <= 0);
    const live = [...terms].filter(([, left]) => left > 0).map(([id]) => id);
    const { free } = model;
    found.push(...compare("permits in use", live.sort().join(), idsOf(model.live).sort().join()));
    // A permit that has expired is free for the next call.
    const visible = value === null ? undefined : Number(value) + lapsed.length;
    found.push(...compare("free permits", visible, free));
    const at = this.open(turn % 2);
    if (at !== undefined) found.push(...(await this.#ask3(at, turn >> 1)));
    return found;
  }

  #compareTerm(permit: Permit, left: number | undefined): string[] {
    if (left === undefined) return [`${permit.id} is not there`];
    const { slack } = this.model;
    const expected = permit.expires - this.world.now;
    const [least, most] = permit.kept ? [LEAST_KEPT, WATCHDOG] : [expected, expected];
    if (permit.kept) this.model.adopt(permit, left);
    if (left >= least - slack && left <= most + slack) return [];
    return [`${permit.id} has ${left} ms left, not ${least} to ${most}`];
  }

  /** Asks one of three questions in turn. */
  async #ask3(at: number, turn: number): Promise<string[]> {
    const { free = 0, live } = this.model;
    const permits = this.#permits(at);
    if (turn % 3 === 0) return compare("availablePermits", await permits.availablePermits(), free);
    if (turn % 3 === 1) return compare("acquiredPermits", await permits.acquiredPermits(), live.length);
    return compare("getPermits", await permits.getPermits(), free + live.length);
  }

  #permits(at: number): PermitExpirableSemaphore {
    return this.clientOf(at).getPermitExpirableSemaphore(this.name);
  }
}

function idsOf(permits: readonly Permit[]): string[] {
  return permits.map(({ id }) => id);
}

const lease = fc.constantFrom(undefined, 90_000, 50_000, 25_000, 12_000);
const permit = index;

export const permits: Synchronizer<Step & Hasty> = {
  name: "permits",
  histories: historiesOf<Step>([
    step(40, "acquire", { client, lease }),
    step(50, "tryAcquire", { client, lease, wait: fc.constantFrom(0, 0, 5_000, 20_000, 60_000) }),
    step(30, "release", { client, permit, any: fc.constantFrom(false, false, false, true) }),
    step(20, "tryRelease", { client, permit, any: fc.constantFrom(false, false, true) }),
    step(12, "update", { client, permit, lease: fc.constantFrom(7_000, 30_000, 100_000) }),
    step(10, "add", { client, permits: fc.integer({ min: 1, max: 2 }) }),
    step(8, "set", { client, permits: fc.nat({ max: 4 }) }),
    step(30, "trySet", { client, permits: fc.nat({ max: 3 }) }),
  ]),
  begin: (...place) => new PermitsCourse(...place),
};
