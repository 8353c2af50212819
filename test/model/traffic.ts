/**
 * Tells, without sleeping, when a real system is at rest: no command is unanswered, every message that a command has
 * published has arrived, and the calls that these woke have run and sent nothing more.
 *
 * A script that publishes puts the message into the subscribers' connections before its own reply is sent. So a PING
 * that a subscriber sends after that reply is answered after the message.
 */
import type { Redis } from "ioredis";

/** What one step causes is over after a few rounds. */
const MOST_ROUNDS = 1_000;

/** Milliseconds of real time. */
const LONGEST_REST = 30_000;

type Command = Parameters<Redis["sendCommand"]>[0];

export class Traffic {
  /** The clients' own connections, and how many channels each listens to. */
  readonly #subscribers = new Map<Redis, number>();
  #unanswered = 0;
  /** Something may have been published since the subscribers' last PING, or one of them is new. */
  #news = false;
  #pinging = false;
  #onAnswered: (() => void) | undefined;

  /**
   * Watches the clients' connection, and the connections that the clients make from it. `before` is called before each
   * command on the former, and may send another command first.
   */
  constructor(redis: Redis, before: () => void) {
    this.#watch(redis, () => {
      before();
      this.#news = true;
    });
    const duplicate = redis.duplicate.bind(redis);
    redis.duplicate = (...options) => {
      const subscriber = duplicate(...options);
      this.#subscribers.set(subscriber, 0);
      // The PING of a new subscriber is answered when it is connected and has subscribed.
      this.#news = true;
      this.#watch(subscriber, ({ name }) => {
        const more = name === "subscribe" ? 1 : name === "unsubscribe" ? -1 : 0;
        this.#subscribers.set(subscriber, (this.#subscribers.get(subscriber) ?? 0) + more);
      });
      return subscriber;
    };
  }

  async rest(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const text = () => `${this.#unanswered} commands are not answered`;
      timer = setTimeout(() => reject(new Error(text())), LONGEST_REST);
    });
    await Promise.race([this.#rest(), late]).finally(() => clearTimeout(timer));
  }

  async #rest(): Promise<void> {
    let rounds = 0;
    do {
      if (++rounds > MOST_ROUNDS) throw new Error("the clients do not come to rest");
      if (this.#unanswered > 0) {
        await new Promise<void>((resolve) => {
          this.#onAnswered = resolve;
        });
      }
      if (this.#news) {
        this.#news = false;
        await this.#ping();
      }
      await new Promise((resolve) => setImmediate(resolve));
    } while (this.#unanswered > 0 || this.#news);
  }

  /** Cuts the clients' own connections when nothing is on its way there; resolves when they have noticed. */
  async deafen(): Promise<void> {
    this.#news = true;
    const connected = [...this.#subscribers.keys()].filter(({ status }) => status === "ready");
    await Promise.all(
      connected.map((subscriber) => {
        const closed = new Promise((resolve) => subscriber.once("close", resolve));
        subscriber.stream.destroy();
        return closed;
      }),
    );
  }

  async #ping(): Promise<void> {
    const pings: Promise<unknown>[] = [];
    this.#pinging = true;
    for (const [subscriber, channels] of this.#subscribers) {
      if (channels === 0 && subscriber.status === "ready") continue;
      // A subscriber whose client was closed meanwhile is forgotten.
      pings.push(subscriber.ping().catch(() => this.#subscribers.delete(subscriber)));
    }
    this.#pinging = false;
    await Promise.all(pings);
  }

  #watch(redis: Redis, sent: (command: Command) => void): void {
    const send = redis.sendCommand.bind(redis);
    /** A command passes here again after it has waited for its connection. */
    const seen = new WeakSet<Command>();
    redis.sendCommand = (command, stream) => {
      if (!this.#pinging && !seen.has(command)) {
        seen.add(command);
        sent(command);
        this.#count(command);
      }
      return send(command, stream);
    };
  }

  #count(command: Command): void {
    this.#unanswered++;
    const answered = () => {
      if (--this.#unanswered === 0) this.#onAnswered?.();
    };
    command.promise.then(answered, answered);
  }
}
