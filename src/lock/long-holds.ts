/** Reports holds that live longer than the option `warnAfter`, by one timer for all holds of a client. */
import type { Clock } from "../base/clock.js";
import type { Events, LockEvent } from "../base/events.js";
import { SharedTimeout, TimedCallback } from "../base/shared-timeout.js";
import type { HoldRecord } from "./hold-record.js";

export class LongHolds {
  readonly #events: Events;
  readonly #timeout: SharedTimeout<TimedCallback>;

  /** `warnAfter`: milliseconds. `outside` runs a function outside every scope. */
  constructor(events: Events, clock: Clock, warnAfter: number, outside: (fn: () => void) => void) {
    this.#events = events;
    this.#timeout = new SharedTimeout(clock, warnAfter, outside);
  }

  /** Reports a hold that was just granted, if the hold does not end in time. */
  watch(hold: HoldRecord, { lockName, kind }: LockEvent): void {
    const tell = () => {
      const { grant, heldFor: held } = hold;
      if (hold.isHeld) this.#events.emit("longHold", { lockName, kind, ownerId: grant.ownerId, held });
    };
    const watched = new TimedCallback(tell);
    this.#timeout.start(watched);
    hold.whenEnded(() => this.#timeout.running.remove(watched));
  }

  /** The client is closed. */
  close(): void {
    this.#timeout.close();
  }
}
