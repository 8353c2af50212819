/** Hears every message on a server. */
import type { Redis } from "ioredis";
import { until } from "../../support/index.js";

export interface Message {
  readonly channel: string;
  readonly payload: string;
}

export class Ear {
  readonly #redis: Redis;
  readonly #own: string;
  #heard: Message[] = [];
  #last = 0;

  private constructor(redis: Redis, own: string) {
    this.#redis = redis;
    this.#own = own;
  }

  /** Ends with the server. */
  static async listen(redis: Redis): Promise<Ear> {
    const ear = new Ear(redis, "the ear's own");
    const subscriber = redis.duplicate();
    subscriber.on("error", () => {}); // the server is stopped before it
    subscriber.on("pmessage", (_pattern, channel: string, payload: string) => {
      ear.#heard.push({ channel, payload });
    });
    await subscriber.psubscribe("*");
    return ear;
  }

  /** What was said about `name` since the last time it was asked about anything, in order. */
  async heard(name: string): Promise<Message[]> {
    const payload = String(++this.#last);
    await this.#redis.publish(this.#own, payload);
    // A server delivers in the order of its commands, so all that was sent before is here then.
    await until(
      "the ear hears its own",
      () => this.#heard.some((each) => each.payload === payload && each.channel === this.#own),
      { every: 1, timeout: 30_000 },
    );
    const heard = this.#heard;
    this.#heard = [];
    return heard.filter(({ channel }) => channel.includes(name));
  }
}
