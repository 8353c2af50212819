/** One permit that was taken without a lease: the watchdog renews it until it is given back or lost. */
import { instant } from "../base/clock.js";
import { LockLostError, type LossReason } from "../base/errors.js";
import type { LockEvent, LockEventName, LockEvents } from "../base/events.js";
import { permitLeases } from "../base/names.js";
import type { Env } from "../env.js";
import { permitsRenew } from "../scripts/generated.js";
import { Leased } from "../watchdog/leased.js";
import type { Renewal, RenewalScript } from "../watchdog/watchdog.js";
import type { SharedNumber } from "./number.js";
import { endPermit, type Permit } from "./permit-want.js";

const renewPermits: RenewalScript = (batch, lease) =>
  permitsRenew.with(
    batch.map(({ key }) => key),
    [lease, ...batch.map(({ field }) => field)],
  );

export class KeptPermit extends Leased {
  readonly isRenewed = true;
  lost: LockLostError | undefined;
  readonly number: SharedNumber;
  readonly id: string;
  /** Epoch milliseconds at which it was asked for. */
  readonly #since: number;

  constructor(number: SharedNumber, { id, sent }: Permit) {
    super();
    this.number = number;
    this.id = id;
    this.#since = sent.wall;
    const { clock, permits, settings, watchdog } = number.env;
    this.raise(sent, settings.watchdogTimeout);
    watchdog.renewAfter(this, sent, instant(clock));
    permits.keep(this);
    watchdog.watch(this);
  }

  get env(): Env {
    return this.number.env;
  }

  /** Milliseconds since the permit was taken. */
  get held(): number {
    return this.clock.wall() - this.#since;
  }

  renewal(): Renewal {
    const key = permitLeases(this.number.key);
    return { leased: this, script: renewPermits, key, field: this.id, extraKeys: [] };
  }

  tell<E extends LockEventName>(event: E, more?: Omit<LockEvents[E], keyof LockEvent>): void {
    this.number.emit(event, { permitId: this.id, ...more } as LockEvents[E]);
  }

  /** It is the watchdog's no more: given back or lost, or it has a lease by now. */
  end(): void {
    this.state = "over";
    this.env.watchdog.watch(this);
    this.env.permits.drop(this);
  }

  /** Ends the permit as lost, and gives it back if the server still has it. */
  lose(reason: LossReason, since: number = this.clock.wall()): void {
    if (this.state === "over") return;
    const { number, id } = this;
    this.lost = new LockLostError(number.lockName, reason, since);
    this.end();
    if (reason === "closed") this.env.permits.closed(this);
    this.tell("lost", { reason, held: since - this.#since });
    const call = number.env.wireId();
    number.env.settle(number.callUntilAnswered(() => endPermit(number, id, call)));
  }

  gone(): void {
    this.lose("expired", this.knownAt);
  }
}
