/** One lock of a history, as the library has it and as the model has it. */
import type { Hold, Lock, LockClient, Owner } from "../../src/index.js";
import { Model } from "./model.js";
import * as model from "./parties.js";
import type { Rules, Side } from "./rules.js";
import type { By } from "./steps.js";
import type { Inhabitant, World } from "./world.js";

/** How the library makes the lock that the rules describe. */
export interface Kind {
  readonly name: string;
  readonly rules: Rules;
  lock(client: LockClient, name: string, side: Side): Lock;
  /** Keys that may be without TTL while a call waits. */
  readonly queues?: RegExp;
  /** Keys that stay, without TTL. */
  readonly counters?: RegExp;
  /** A number that rises with each outermost grant, and that nested holds share. */
  token?(hold: Hold): bigint;
}

/** The same thing in the library and in the model. */
export interface Pair<R, M> {
  readonly real: R;
  readonly model: M;
}

/** The caller: named by the option `owner`, or by the scope or run of the call. */
export interface Party {
  readonly model: model.Owner;
  readonly owner: Owner | Hold | undefined;
  readonly within: <T>(call: () => Promise<T>) => Promise<T>;
  readonly text: string;
}

const NAMED_OWNERS = 2;

export class Scene {
  readonly world: World;
  readonly kind: Kind;
  readonly name: string;
  readonly model: Model;
  readonly holds: Pair<Hold, model.Hold>[] = [];
  /** The controller that aborts each call, and the model's view of the call. */
  readonly calls: Pair<AbortController, model.Call>[] = [];
  /** The named owners of each client. */
  readonly owners: readonly Pair<Owner, model.Owner>[][];

  constructor(world: World, kind: Kind, name: string) {
    this.world = world;
    this.kind = kind;
    this.name = name;
    this.model = new Model(kind.rules, world);
    this.owners = world.inhabitants.map(({ client }, i) =>
      Array.from({ length: NAMED_OWNERS }, (_, n) => ({
        real: client.newOwner(),
        model: model.newOwner(i, n),
      })),
    );
  }

  /** The holds that have not ended, as far as the model knows. */
  get held(): Pair<Hold, model.Hold>[] {
    return this.holds.filter(({ model: { state } }) => state === "held");
  }

  get pending(): Pair<AbortController, model.Call>[] {
    return this.calls.filter(({ model: { pending } }) => pending);
  }

  nameOf(hold: Pair<Hold, model.Hold>): string {
    return `hold ${this.holds.indexOf(hold)}`;
  }

  preferHeld(index: number): Pair<Hold, model.Hold> | undefined {
    return pick(this.held, index) ?? pick(this.holds, index);
  }

  /** The caller; undefined if it is to be the owner of a hold, and there is no hold. */
  party(client: number, by: By): Party | undefined {
    const direct: Party["within"] = (call) => call();
    if (by.as === "bare") {
      return { model: model.newOwner(client), owner: undefined, within: direct, text: `client ${client}` };
    }
    if (by.as === "hold") {
      const hold = this.preferHeld(by.hold);
      if (!hold) return undefined;
      const text = `owner of ${this.nameOf(hold)}`;
      return { model: hold.model.owner, owner: hold.real, within: direct, text };
    }
    const named = pick(this.owners[client] ?? [], by.n);
    if (!named) return undefined;
    const text = `${by.as} ${client}/${by.n}`;
    if (by.as === "owner") return { model: named.model, owner: named.real, within: direct, text };
    return { model: named.model, owner: undefined, within: (call) => named.real.scope(call), text };
  }

  side(index: number): Side {
    return pick(this.kind.rules.sides, index) as Side;
  }

  lock(client: number, side: Side): Lock {
    const { client: real } = this.world.inhabitants[client] as Inhabitant;
    return this.kind.lock(real, this.name, side);
  }
}

/** The element at this place; after the last one the list starts again. */
export function pick<T>(list: readonly T[], index: number): T | undefined {
  return list[index % list.length];
}
