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

  /** Listens until the server ends. */
  static async listen(redis: Redis): Promise<Ear> {
    const ear = new Ear(redis, "the ear's own");
    const subscriber = redis.duplicate();
    subscriber.on("error", () => {}); // the server is stopped first
    subscriber.on("pmessage", (_pattern, channel: string, payload: string) => {
      ear.#heard.push({ channel, payload });
    });
    await subscriber.psubscribe("*");
    return ear;
  }

  /** The messages about `name`, in order, since the last call of this for any name. */
  async heard(name: string): Promise<Message[]> {
    const payload = String(++this.#last);
    await this.#redis.publish(this.#own, payload);
    // A server delivers messages in the order of its commands, so all earlier ones have arrived by then.
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
