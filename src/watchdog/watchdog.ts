/**
 * Renews leases, and notices when a lease has ended. One timer serves all grants and permits of a client; renewals that are
 * due together go together, 100 in one command.
 *
 * Local deadlines are checked first: a late timer must not renew a lost hold. After a stall of this process replies are
 * read before timers, so an answer checks them too: what is past its deadline is lost, whatever the server says.
 */
import { elapsed, type Instant, instant } from "../base/clock.js";
import { renewalInterval, retryInterval } from "../base/lease.js";
import { TimerHeap } from "../base/timer-heap.js";
import { Command } from "../redis/command.js";
import type { CommandRunner } from "../redis/command-runner.js";
import { isOfOneKey } from "../redis/failures.js";
import { slotOf } from "../redis/slots.js";
import type { ScriptCall } from "../scripts/script.js";
import type { Leased } from "./leased.js";

const BATCH = 100;
const NEVER = Number.POSITIVE_INFINITY;
/** The share of the lease within which renewals go together: holds that were taken soon after each other share them. */
const SLACK = 1 / 12;

export interface Renewal {
  readonly leased: Leased;
  /** Renewals of one kind go together. */
  readonly script: RenewalScript;
  /** The key of the lock, or of the leases of permits. */
  readonly key: string;
  /** What is renewed there: an owner, or a permit. */
  readonly field: string;
  /** Further keys that it consists of. */
  readonly extraKeys: readonly string[];
  /** Which term of the deadline the renewal belongs to. */
  readonly term?: number;
}

/** The script that renews many for `lease` milliseconds. It answers with a word on each: 1 renewed, 0 gone, -1 taken. */
export type RenewalScript = (renewals: readonly Renewal[], lease: number) => ScriptCall;

export class Watchdog {
  readonly #runner: CommandRunner;
  readonly #lease: number;
  /** Milliseconds from one renewal to the next. */
  readonly #interval: number;
  readonly #heap: TimerHeap<Leased>;

  /** `lease`: milliseconds that each renewal asks for. */
  constructor(runner: CommandRunner, lease: number) {
    this.#runner = runner;
    this.#lease = lease;
    this.#interval = renewalInterval(lease);
    this.#heap = new TimerHeap(runner.clock, () => this.#tick());
  }

  /** Schedules `leased` anew, or removes it if it is not held any more. */
  watch(leased: Leased): void {
    if (leased.state !== "held") return this.#heap.remove(leased);
    const { isRenewed, endsAt, renewAt } = leased;
    this.#heap.put(leased, isRenewed ? Math.min(endsAt, renewAt) : endsAt);
  }

  /**
   * A command that granted or renewed was sent at `sent`: the next renewal is due a third of the lease later, or at once if
   * the deadline comes before that. An extend() may have brought it forward while the answer was on its way.
   */
  renewAfter(leased: Leased, sent: Instant, now: Instant): void {
    const next = now.mono - elapsed(sent, now) + this.#interval;
    leased.renewAt = Math.min(leased.renewAt, next < leased.endsAt ? next : now.mono);
  }

  /** The connection is back: by a renewal each learns whether the server still has it. */
  renewNow(all: readonly Leased[]): void {
    for (const leased of all) {
      if (!leased.isRenewed || leased.renewAt === NEVER) continue;
      leased.renewAt = this.#runner.clock.mono();
      this.watch(leased);
    }
  }

  /** Nothing that it watches is held any more. */
  close(): void {
    this.#heap.close();
  }

  #tick(): void {
    const now = instant(this.#runner.clock);
    const horizon = now.mono + this.#lease * SLACK;
    const near: Leased[] = [];
    for (let first = this.#heap.first; first && first.dueAt <= horizon; first = this.#heap.first) {
      this.#heap.remove(first);
      near.push(first);
    }
    const renewals: Renewal[] = [];
    for (const leased of near) {
      leased.check(now);
      if (leased.state === "held" && leased.isRenewed && leased.renewAt <= horizon) {
        leased.renewAt = NEVER;
        const renewal = leased.renewal();
        if (renewal) {
          leased.renewing++;
          renewals.push(renewal);
        }
      }
      this.watch(leased);
    }
    for (const batch of this.#batches(renewals)) this.#send(batch);
  }

  /** On a cluster keys of different slots must not share a command. */
  *#batches(renewals: readonly Renewal[]): Iterable<Renewal[]> {
    const open = new Map<RenewalScript, Map<number, Renewal[]>>();
    for (const renewal of renewals) {
      const groups = open.get(renewal.script) ?? new Map<number, Renewal[]>();
      open.set(renewal.script, groups);
      const group = this.#runner.isCluster ? slotOf(renewal.key) : 0;
      const batch = groups.get(group) ?? [];
      groups.set(group, batch);
      batch.push(renewal);
      if (batch.length < BATCH) continue;
      groups.delete(group);
      yield batch;
    }
    for (const groups of open.values()) yield* groups.values();
  }

  #send(batch: readonly Renewal[]): void {
    const runner = this.#runner;
    // A renewal without an answer is given up early enough for another try within the lease.
    const within = Math.min(runner.commandTimeout, this.#interval);
    new RenewalCommand(runner, this, batch, this.#lease).begin(within);
  }

  /** The server has answered the renewal that was sent at `sent`. */
  renewed({ leased, term }: Renewal, word: number, sent: Instant, now: Instant): void {
    leased.check(now);
    leased.renewing--;
    if (leased.state !== "held") return;
    if (!leased.has(word)) return leased.gone(word);
    leased.isSuspended = false;
    leased.raise(sent, this.#lease, term);
    this.renewAfter(leased, sent, now);
    this.watch(leased);
    leased.tell("renewed");
  }

  /** Without an answer they are still good, and are renewed again soon. */
  notRenewed(batch: readonly Renewal[], cause: unknown): void {
    // A failure that may be one renewal's alone: the others are sent without it.
    if (batch.length > 1 && isOfOneKey(cause)) for (const renewal of batch) this.#send([renewal]);
    else for (const renewal of batch) this.#suspend(renewal, cause);
  }

  #suspend({ leased }: Renewal, cause: unknown): void {
    const { isHeld } = leased;
    leased.renewing--;
    if (!isHeld) return;
    leased.renewAt = this.#runner.clock.mono() + retryInterval(this.#lease);
    this.watch(leased);
    if (leased.isSuspended) return;
    leased.isSuspended = true;
    leased.tell("suspended", { cause });
  }
}

/** Renews many. An error concerns all locks of the batch, so the command names none. */
class RenewalCommand extends Command {
  readonly #watchdog: Watchdog;
  readonly #batch: readonly Renewal[];
  readonly #lease: number;

  constructor(runner: CommandRunner, watchdog: Watchdog, batch: readonly Renewal[], lease: number) {
    super(runner, "");
    this.#watchdog = watchdog;
    this.#batch = batch;
    this.#lease = lease;
  }

  protected override request(): ScriptCall {
    return (this.#batch[0] as Renewal).script(this.#batch, this.#lease);
  }

  protected override answered(reply: unknown, now: Instant): void {
    const words = wordsOf(reply);
    for (const [i, renewal] of this.#batch.entries())
      this.#watchdog.renewed(renewal, words[i] ?? 0, this.sentAt, now);
  }

  protected override failed(error: unknown): void {
    this.#watchdog.notRenewed(this.#batch, error);
  }

  /** The server has renewed after all. */
  protected override late(reply: unknown): void {
    const words = wordsOf(reply);
    for (const [i, { leased, term }] of this.#batch.entries()) {
      if ((words[i] ?? 0) > 0 && leased.isHeld) leased.raise(this.sentAt, this.#lease, term);
    }
  }
}

/** Of one renewal the answer is a word, of several a list. */
function wordsOf(reply: unknown): number[] {
  return [reply].flat().map(Number);
}
