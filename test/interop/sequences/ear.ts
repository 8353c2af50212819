/** Hears every message on a server. */
import type { Redis } from "ioredis";
import { type Deferred, deferred } from "../../support/deferred.js";

export interface Message {
  readonly channel: string;
  readonly payload: string;
}

/** The channel of the ear itself. */
const OWN = "the ear's own";

export class Ear {
  readonly #redis: Redis;
  readonly #questions: Deferred[] = [];
  #heard: Message[] = [];

  private constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Listens until the server ends. */
  static async listen(redis: Redis): Promise<Ear> {
    const ear = new Ear(redis);
    const subscriber = redis.duplicate();
    subscriber.on("error", () => {}); // the server is stopped first
    subscriber.on("pmessage", (_pattern, channel: string, payload: string) => {
      if (channel === OWN) ear.#questions.shift()?.resolve();
      else ear.#heard.push({ channel, payload });
    });
    await subscriber.psubscribe("*");
    return ear;
  }

  /** The messages about `name`, in order, since the last call of this for any name. */
  async heard(name: string): Promise<Message[]> {
    const question = deferred();
    this.#questions.push(question);
    await this.#redis.publish(OWN, "");
    // A server delivers messages in the order of its commands, so all earlier ones have arrived by then.
    await question.promise;
    const heard = this.#heard;
    this.#heard = [];
    return heard.filter(({ channel }) => channel.includes(name));
  }
}
