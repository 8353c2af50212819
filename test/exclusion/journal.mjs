/**
 * The resource that a lock guards, and the witness of who used it: a counter that is read at the entry and written
 * back at the exit, a register of who is inside, and a journal of both, all on a Redis of its own that suffers no
 * faults. The journal is written in the same transaction as what it tells of, so that a process that is killed
 * leaves no doubt about what it did.
 */

const ENTER = `
local previous = redis.call('GETSET', KEYS[1], ARGV[1])
redis.call('RPUSH', KEYS[3], ARGV[2] .. ' ' .. (previous or '-'))
return redis.call('GET', KEYS[2]) or '0'`;

const LEAVE = `
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
if ARGV[3] ~= '' then
  redis.call('SET', KEYS[2], ARGV[3])
  redis.call('INCR', KEYS[4])
end
redis.call('RPUSH', KEYS[3], ARGV[2])`;

const MS = 1e6;

/** @returns {bigint} nanoseconds on the clock that all processes of the machine share */
export function now() {
  return process.hrtime.bigint();
}

export class Journal {
  #redis;
  #process;
  #last = 0;

  /**
   * @param {import("ioredis").Redis} redis the witness
   * @param {string} name of this process, in the journal
   */
  constructor(redis, name) {
    this.#redis = redis;
    this.#process = name;
    redis.defineCommand("enterSection", { numberOfKeys: 3, lua: ENTER });
    redis.defineCommand("leaveSection", { numberOfKeys: 4, lua: LEAVE });
  }

  /**
   * To be called in the tick of the grant.
   * @param {string} lock
   * @param {bigint} askedAt
   * @param {number} lease ms
   * @param {number} remaining ms until the hold is over by its own account
   */
  async enter(lock, askedAt, lease, remaining) {
    const enteredAt = now();
    const id = `${this.#process}:${++this.#last}`;
    const entry = `E ${id} ${lock} ${askedAt} ${enteredAt} ${lease}`;
    const value = await this.#redis.enterSection(
      `inside:${lock}`,
      `counter:${lock}`,
      `journal:${this.#process}`,
      id,
      entry,
    );
    return { id, lock, value: Number(value), deadline: enteredAt + BigInt(Math.floor(remaining * MS)) };
  }

  /**
   * To be called before the unlock.
   * @param {{ id: string, lock: string, value: number, deadline: bigint }} section
   * @param {boolean} held whether the hold still stands by its own account
   * @param {boolean} write whether the counter is written back: not if the hold may be over when the write arrives
   */
  async leave({ id, lock, value, deadline }, held, write) {
    const entry = held ? `L ${id} ${now()}` : `X ${id} ${deadline}`;
    await this.#redis.leaveSection(
      `inside:${lock}`,
      `counter:${lock}`,
      `journal:${this.#process}`,
      `writes:${lock}`,
      id,
      entry,
      held && write ? String(value + 1) : "",
    );
  }
}
