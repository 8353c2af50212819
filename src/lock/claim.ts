/**
 * A call's claim on a lock: the wire id under which it tries. The call mints the id at the first try, and anew once it
 * is over. The server may have something of the id, or may yet get it: a grant whose answer was lost, or a ticket. As
 * long as it may, a call that does not want the id any more has to end it.
 */
import type { Kind, Taken, Try } from "../kinds/kind.js";
import type { OwnerRecord } from "../owner/owner.js";
import type { Listener } from "../pubsub/router.js";
import { Waiter } from "../waiting/waiter.js";
import { endInBackground } from "./end.js";
import { Grant } from "./grant.js";
import type { HoldRecord } from "./hold-record.js";
import type { Asked } from "./options.js";

const NOBODY: readonly string[] = [];

export abstract class Claim extends Waiter<Kind, HoldRecord<Grant>> implements Try {
  readonly asked: Asked;
  readonly owner: OwnerRecord | undefined;
  readonly lease: number;
  /** What its id was granted. */
  #grant: Grant | undefined;
  #number = 0;
  /** The id of its first try: events tell of the call under that. */
  #first: string | undefined;
  /** Waiters whose tickets the try refreshes. */
  coWaiters: readonly string[] = NOBODY;

  constructor(kind: Kind, asked: Asked) {
    super(kind, asked);
    this.asked = asked;
    this.owner = asked.owner;
    this.lease = asked.lease ?? kind.env.settings.watchdogTimeout;
  }

  get lockKey(): string {
    return this.wanted.lockKey;
  }

  override listen(listener: Listener): () => void {
    return this.env.router.subscribe(this.wanted.wakesOn(this.ownId), listener);
  }

  /** Its wire id, minted if it has none. */
  protected get ownId(): string {
    if (this.wireId === undefined) {
      this.#number = this.env.mint();
      this.wireId = this.env.wireId(this.#number);
      this.#first ??= this.wireId;
    }
    return this.wireId;
  }

  override get toldId(): string {
    return this.#first ?? this.ownId;
  }

  override advertise(): string | undefined {
    if (!this.wanted.traits.advertised) return undefined;
    this.unsure();
    this.toldAt = this.env.clock.mono();
    return this.ownId;
  }

  /** Sends a try under its own id. */
  protected claim(): void {
    this.coWaiters = this.#tickets();
    this.sendTry();
  }

  protected override isGrant(reply: unknown): boolean {
    return this.wanted.readTaken(reply).is === "granted";
  }

  /** What the server says to its try. */
  protected readTaken(reply: unknown): Taken {
    const taken = this.wanted.readTaken(reply);
    const { serverQueued, advertised } = this.wanted.traits;
    if (taken.is === "refused" && this.wait > 0 && (serverQueued || advertised)) this.unsure();
    return taken;
  }

  /** The grant of its id. */
  protected granted(token: bigint | undefined): Grant {
    const grant = new Grant(this.wanted, this.#number, this.owner, token);
    this.#grant = grant;
    grant.raise(this.sentAt, this.lease, 0);
    return grant;
  }

  /** Whether a grant is that of its own id. */
  protected owns(grant: Grant): boolean {
    return grant === this.#grant;
  }

  /** Its id is over: it goes on under a fresh one. */
  protected forgetId(): void {
    // The END of the old id may have named the new one already, as that of the next writer.
    if (!this.withdraw()) this.wireId = undefined;
  }

  /** Ends its wire id. */
  protected override undo(): Promise<void> | undefined {
    const { wireId } = this;
    if (wireId === undefined) return undefined;
    this.wireId = undefined;
    return endInBackground(this.wanted, wireId, this.owner);
  }

  protected override late(reply: unknown, wireId: string | undefined): void {
    if (wireId === undefined) return;
    if (this.isGrant(reply)) this.lateGrant(wireId);
  }

  /** The server has granted a wire id for which this call does not wait now. */
  protected lateGrant(wireId: string): void {
    const isWaiting = this.state !== "over" && wireId === this.wireId;
    if (isWaiting) {
      if (this.isInLine) this.tryNow();
      else if (this.place) this.place.hinted = true;
      return;
    }
    // It is no news to a grant that lives, or whose END is on its way.
    if (this.#grant?.wireId === wireId && this.#grant.state !== "over") return;
    void endInBackground(this.wanted, wireId, this.owner);
  }

  /** The first in line keeps the tickets of all others alive. */
  #tickets(): readonly string[] {
    const { site } = this;
    if (!this.wanted.traits.serverQueued || site?.first !== this) return NOBODY;
    return site.waiters().flatMap((waiter) => (waiter === this ? [] : (waiter.wireId ?? [])));
  }
}
