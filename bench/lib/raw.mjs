// The least that a lock can do, of which the floors are made: one script to take, one to give back.
import { createHash, randomBytes } from "node:crypto";
import { sleep } from "./stats.mjs";

const script = (text) => ({ text, sha: createHash("sha1").update(text).digest("hex") });

export const TAKE = script("return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0");
export const GIVE_BACK = script(
  "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0",
);
export const EXTEND = script(
  "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0",
);
const NEST = script(
  "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end return redis.call('hincrby', KEYS[1], ARGV[1], 1)",
);
const UNNEST = script(
  "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end return redis.call('hincrby', KEYS[1], ARGV[1], -1)",
);

export const run = (redis, { sha }, key, ...args) => redis.evalsha(sha, 1, key, ...args);

export const load = (redises, scripts = [TAKE, GIVE_BACK, EXTEND, NEST, UNNEST]) =>
  Promise.all(redises.flatMap((redis) => scripts.map(({ text }) => redis.script("LOAD", text))));

const prefix = randomBytes(9).toString("base64");
let n = 0;
export const ownerId = () => prefix + ++n;

/** Resolves as soon as `need` have said 1 (true), or no longer can (false). */
export const quorum = (answers, need) =>
  new Promise((resolve) => {
    let yes = 0;
    let no = 0;
    const most = answers.length - need;
    const refused = () => {
      if (++no > most) resolve(false);
    };
    for (const answer of answers) {
      answer.then((value) => {
        if (value !== 1) refused();
        else if (++yes === need) resolve(true);
      }, refused);
    }
  });

/** On one master, or on all with a quorum. Refused: again after `pause()` ms. */
function takesOn(redises, pause) {
  const [one] = redises;
  const need = (redises.length >> 1) + 1;
  const all = (ask) => quorum(redises.map(ask), need);
  if (redises.length === 1) {
    return {
      async acquire(key, ttl) {
        const value = ownerId();
        while ((await run(one, TAKE, key, value, ttl)) !== 1) await sleep(pause());
        return { key, value };
      },
      release: ({ key, value }) => run(one, GIVE_BACK, key, value),
    };
  }
  return {
    async acquire(key, ttl) {
      const value = ownerId();
      while (!(await all((redis) => run(redis, TAKE, key, value, ttl)))) {
        await all((redis) => run(redis, GIVE_BACK, key, value));
        await sleep(pause());
      }
      return { key, value };
    },
    release: ({ key, value }) => all((redis) => run(redis, GIVE_BACK, key, value)),
  };
}

/** Holds that are renewed at 80 % of their TTL, all by one timer, which calls `renew(holds, ttl)`. */
function keeper({ acquire, release }, renew) {
  const held = new Set();
  let timer;
  return {
    async hold(key, ttl) {
      const hold = await acquire(key, ttl);
      held.add(hold);
      timer ??= setInterval(() => renew([...held], ttl), ttl * 0.8);
      return hold;
    },
    drop(hold) {
      held.delete(hold);
      if (held.size === 0) timer = clearInterval(timer);
      return release(hold);
    },
  };
}

/** The floor `raw`, and what differs from it by an option of ioredis or by how it renews. */
export const make =
  ({ options, renew, pause = () => 1 } = {}) =>
  async (env) => {
    const redises = await env.connectAll(options);
    await load(redises);
    const [redis] = redises;
    const takes = takesOn(redises, pause);
    const renewEach = (holds, ttl) => {
      for (const { key, value } of holds) run(redis, EXTEND, key, value, ttl).catch(() => {});
    };
    return {
      redis,
      ...takes,
      ...keeper(takes, renew ? (holds, ttl) => renew(redis, holds, ttl) : renewEach),
      async inside(key, ttl, act) {
        await redis.hset(key, "owner", 1);
        await redis.pexpire(key, ttl);
        await act(
          () => run(redis, NEST, key, "owner"),
          () => run(redis, UNNEST, key, "owner"),
        );
      },
      close() {
        for (const each of redises) each.disconnect();
      },
    };
  };

/** The floors that take many keys in one call, separated by spaces. `ask(keys, one)` has one asked for each: how, is theirs. */
export const makeMany = (ask) => async (env) => {
  const redis = await env.connect(0);
  await load([redis]);
  const value = ownerId();
  const each = async (keys, one) => {
    const answers = await ask(keys, one);
    if (answers.some((answer) => answer !== 1)) throw new Error("not free");
  };
  return {
    async acquire(names, ttl) {
      const keys = names.split(" ");
      await each(keys, (key) => run(redis, TAKE, key, value, ttl));
      return keys;
    },
    release: (keys) => each(keys, (key) => run(redis, GIVE_BACK, key, value)),
    close: () => redis.disconnect(),
  };
};
