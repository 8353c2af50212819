/**
 * The resource that a lock guards, and the witness of who used it: a counter that is read at the entry and written
 * back at the exit, a register of who is inside, and a journal of both, all on a Redis of its own that suffers no
 * faults. The journal is written in the same transaction as what it tells of, so that a process that is killed
 * leaves no doubt about what it did.
 *
 * Who shares a lock only reads the counter, and compares at the exit. Where there are fencing tokens, the counter
 * refuses what comes with a lower one than it has seen.
 */

export const ENTER = `
local inside, readers, counter, journal, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, entry, shared, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local found = {redis.call('GET', inside) or nil}
if shared == '1' then
  redis.call('SADD', readers, id)
else
  for _, reader in ipairs(redis.call('SMEMBERS', readers)) do found[#found + 1] = reader end
  redis.call('DEL', readers)
  redis.call('SET', inside, id)
end
if token ~= '-' and tonumber(token) > tonumber(redis.call('GET', fence) or 0) then
  redis.call('SET', fence, token)
end
redis.call('RPUSH', journal, entry .. ' ' .. (#found > 0 and table.concat(found, ',') or '-'))
return redis.call('GET', counter) or '0'`;

export const LEAVE = `
local inside, readers, counter, journal, fence, writes = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local id, entry, value, expected, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
if redis.call('GET', inside) == id then redis.call('DEL', inside) end
redis.call('SREM', readers, id)
local refused = token ~= '-' and redis.call('GET', fence) ~= token
if value ~= '' and not refused then
  redis.call('SET', counter, value)
  redis.call('INCR', writes)
end
local torn = expected ~= '' and (redis.call('GET', counter) or '0') ~= expected
redis.call('RPUSH', journal, entry .. (torn and ' torn' or ''))`;

const MS = 1e6;

/** @returns {bigint} nanoseconds on the clock that all processes of the machine share */
export function now() {
  return process.hrtime.bigint();
}

/**
 * @typedef {object} Stay what is known of one when it begins
 * @property {string} lock
 * @property {string} owner
 * @property {boolean} [shared]
 * @property {bigint} askedAt
 * @property {{ at: bigint, before: "all" | "readers" }} [place]
 * @property {bigint} enteredAt to be taken before `remaining`, so that a pause between the two makes the stay shorter
 * @property {number} lease ms
 * @property {boolean} [renewed] whether it goes on by itself
 * @property {number} remaining ms until the hold is over by its own account
 * @property {bigint} [token]
 */

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
    redis.defineCommand("enterSection", { numberOfKeys: 5, lua: ENTER });
    redis.defineCommand("leaveSection", { numberOfKeys: 6, lua: LEAVE });
  }

  /**
   * To be called in the tick of the grant.
   * @param {Stay} stay
   */
  async enter({
    lock,
    owner,
    shared = false,
    askedAt,
    place,
    enteredAt,
    lease,
    renewed = true,
    remaining,
    token,
  }) {
    const id = `${this.#process}:${++this.#last}`;
    // By whole milliseconds of the wall clock it may be over by one of them sooner.
    const deadline = enteredAt + BigInt(Math.max(0, Math.floor((remaining - 1) * MS)));
    const mode = shared ? "shared" : "alone";
    const fencing = token === undefined ? "-" : String(token);
    const line = place ? `${place.before}@${place.at}` : "-";
    const time = `${askedAt} ${enteredAt} ${lease} ${renewed ? "-" : deadline}`;
    const entry = `E ${id} ${lock} ${time} ${owner} ${mode} ${fencing} ${line}`;
    const value = await this.#redis.enterSection(...this.#keys(lock), id, entry, shared ? "1" : "", fencing);
    return { id, lock, shared, fencing, value: Number(value), deadline };
  }

  /**
   * To be called before the unlock. The instant is taken before the hold is asked, so that a pause between the two makes
   * the stay shorter.
   * @param {{ id: string, lock: string, shared: boolean, fencing: string, value: number, deadline: bigint }} section
   * @param {{ isHeld: boolean }} hold
   * @param {boolean} sure whether the counter is used: not if the hold may be over when that arrives
   */
  async leave({ id, lock, shared, fencing, value, deadline }, hold, sure) {
    const leftAt = now();
    const entry = hold.isHeld ? `L ${id} ${leftAt}` : `X ${id} ${deadline}`;
    const write = sure && !shared ? String(value + 1) : "";
    const expect = sure && shared ? String(value) : "";
    await this.#redis.leaveSection(...this.#keys(lock), `writes:${lock}`, id, entry, write, expect, fencing);
  }

  /** This process stood still, so that a server may have taken those who wait here for dead. */
  async stalled(from, until) {
    await this.#redis.rpush(`stalls:${this.#process}`, `${from} ${until}`);
  }

  /** A timer of this process was so many nanoseconds late. */
  async late(lag) {
    await this.#redis.set(`lag:${this.#process}`, String(lag));
  }

  #keys(lock) {
    return [
      `inside:${lock}`,
      `readers:${lock}`,
      `counter:${lock}`,
      `journal:${this.#process}`,
      `fence:${lock}`,
    ];
  }
}
