/**
 * The witness of who is inside a semaphore, on a Redis of its own that has no faults: a register of the stays inside,
 * with the permits of each, and a journal. Both are written in one transaction, so that a killed process leaves no
 * doubt about what it did.
 */

const ENTER = `
local inside, most, journal = KEYS[1], KEYS[2], KEYS[3]
local id, permits, entry = ARGV[1], ARGV[2], ARGV[3]
redis.call('HSET', inside, id, permits)
local total = 0
for _, taken in ipairs(redis.call('HVALS', inside)) do total = total + taken end
if total > tonumber(redis.call('GET', most) or 0) then redis.call('SET', most, total) end
redis.call('RPUSH', journal, entry .. ' ' .. table.concat(redis.call('HKEYS', inside), ','))`;

const LEAVE = `
local inside, journal = KEYS[1], KEYS[2]
redis.call('HDEL', inside, ARGV[1])
redis.call('RPUSH', journal, ARGV[2])`;

/** @returns {bigint} nanoseconds on the clock that all processes of the machine share */
export function now() {
  return process.hrtime.bigint();
}

export class CrowdJournal {
  #redis;
  #process;
  #last = 0;
  /** The stays inside, by the id of their permit. */
  #inside = new Map();

  /**
   * @param {import("ioredis").Redis} redis the witness
   * @param {string} name of this process, in the journal
   */
  constructor(redis, name) {
    this.#redis = redis;
    this.#process = name;
    redis.defineCommand("enterCrowd", { numberOfKeys: 3, lua: ENTER });
    redis.defineCommand("leaveCrowd", { numberOfKeys: 2, lua: LEAVE });
  }

  /**
   * Call it in the tick of the grant.
   * @param {{ lock: string, permits: number, askedAt: bigint, lease?: number, permitId?: string }} stay
   * `lease`: ms; absent if the permits have none, or the watchdog keeps them
   * @returns {Promise<{ lock: string, id: string }>}
   */
  async enter({ lock, permits, askedAt, lease, permitId }) {
    const id = `${this.#process}:${++this.#last}`;
    const entry = `E ${id} ${lock} ${permits} ${askedAt} ${now()} ${lease ?? "-"} ${permitId ?? "-"}`;
    const keys = [`inside:${lock}`, `most:${lock}`, this.#journal];
    if (permitId !== undefined) this.#inside.set(permitId, id);
    await this.#redis.enterCrowd(...keys, id, permits, entry);
    return { lock, id };
  }

  /** Call it before the permits are given back. */
  async leave({ lock, id }) {
    await this.#redis.leaveCrowd(`inside:${lock}`, this.#journal, id, `L ${id} ${now()}`);
  }

  /** Call it in the tick in which the library says that it could not keep a permit. */
  async lost(permitId) {
    const id = this.#inside.get(permitId);
    if (id !== undefined) await this.#redis.rpush(this.#journal, `X ${id} ${now()}`);
  }

  /** Call it when the library has refused to take a permit back. */
  async refused({ id }) {
    await this.#redis.rpush(this.#journal, `R ${id} ${now()}`);
  }

  /** A call that could wait has got nothing. */
  async inVain({ lock, permits, askedAt }) {
    await this.#redis.rpush(this.#journal, `V ${lock} ${permits} ${askedAt} ${now()}`);
  }

  get #journal() {
    return `crowd-journal:${this.#process}`;
  }
}
