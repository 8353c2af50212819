/** How the holds of one owner on one lock are lost, by its clock, the server's word, force, or the end of the client. */
import type { LockLostError, LossReason } from "../base/errors.js";
import { trace } from "../base/trace.js";
import { outside } from "../owners/context.js";
import type { LiveHoldings } from "./env.js";
import type { Grant } from "./grant.js";
import { Holdings } from "./holdings.js";
import { eventOf, type Primitive, type Side, TAKEN } from "./primitive.js";
import { noop } from "./work.js";

/** What has gone wrong, and is the likely cause should a hold be gone. */
interface Troubles {
  /** Sides that another client of this process gave back by force. */
  readonly forced?: readonly Side[];
  /** See {@link Losses.suspended}. */
  readonly suspended?: boolean;
}

export abstract class Losses extends Holdings implements LiveHoldings {
  /** Among the live holdings of the client. */
  next: this | undefined;
  prev: this | undefined;
  list: object | undefined;
  #troubles: Troubles | undefined;
  /** Renewals on their way: if they are not answered, the likely cause, should the deadline pass. */
  protected renewing = 0;

  protected override add(grant: Grant): void {
    if (this.empty) this.#troubles = undefined;
    super.add(grant);
  }

  /** The last renewal got no answer: likewise. */
  protected get suspended(): boolean {
    return this.#troubles?.suspended ?? false;
  }

  protected set suspended(suspended: boolean) {
    if (suspended || this.#troubles) this.#troubles = { ...this.#troubles, suspended };
  }

  /** What the clock says is over is lost. */
  protected dropExpired(): void {
    const { expired } = this;
    if (expired.length > 0) this.drop(expired, undefined);
  }

  /** Loses holds by this side's decision; what the server still has of them is given back in the background. */
  protected drop(grants: readonly Grant[], reason: LossReason | undefined): void {
    const wireId = this.sharedId as string;
    for (const grant of grants) {
      this.lose(
        grant,
        reason ?? (grant.renewed && (this.suspended || this.renewing > 0) ? "unreachable" : "expired"),
      );
    }
    this.keep((grant) => grant.state !== "lost");
    for (const primitive of new Map(grants.map(({ primitive }) => [primitive.side, primitive])).values()) {
      const giving = { rest: () => this.rest(primitive), onSilence: noop };
      const release = () => this.letGo(primitive, wireId, giving);
      // With no hold left the wire id is over, and nothing need wait for its release.
      this.env.settle(this.empty ? release() : this.inOrder(release));
    }
  }

  /**
   * The server does not know the owner any more, on one side or on any: every live hold there is lost. Those on their
   * way back will be told so.
   */
  protected loseAll(reason: LossReason, side?: Side): void {
    for (const grant of this.held) {
      if (side === undefined || grant.primitive.side === side) this.lose(grant, reason);
    }
    this.keep((grant) => grant.state !== "lost");
  }

  protected lose(grant: Grant, reason: LossReason): LockLostError {
    if (grant.loss) return grant.loss;
    const { held, primitive, wireId } = grant;
    const loss = grant.lose(reason);
    trace('lock "%s": lost by %s, %s', grant.lockName, wireId, reason);
    outside(() => grant.tellLoss());
    this.env.events.emit("lost", { ...eventOf(primitive), ownerId: wireId, reason, held });
    return loss;
  }

  /** Why the server says that the owner has nothing, on a side or on any. */
  protected absence(word: number, side: Side | undefined): LossReason {
    const forced = this.#troubles?.forced;
    if (forced && (side === undefined || forced.includes(side))) return "forced";
    // The key may be there on account of the owner's other side.
    const isBeside = side !== undefined && this.held.some((grant) => grant.primitive.side !== side);
    return word === TAKEN && !isBeside ? "taken" : "expired";
  }

  // What happens to the whole lock or the whole client

  abstract hasBareHold(primitive: Primitive): boolean;

  wireIdOn(primitive: Primitive): string | undefined {
    const { key, side } = primitive;
    const isOn = (grant: Grant) => grant.primitive.key === key && grant.primitive.side === side;
    return this.held.some(isOn) ? this.sharedId : undefined;
  }

  loseByForce(primitive: Primitive, wireId: string): void {
    if (this.wireIdOn(primitive) === wireId) this.loseAll("forced", primitive.side);
  }

  hearOfForce(primitive: Primitive): void {
    if (this.wireIdOn(primitive) === undefined) return;
    const forced = [...(this.#troubles?.forced ?? []), primitive.side];
    this.#troubles = { ...this.#troubles, forced };
  }

  loseByClose(): void {
    const { held } = this;
    if (held.length > 0) this.drop(held, "closed");
  }
}
