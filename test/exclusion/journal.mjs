/**
 * The resource that a lock guards, and the witness of its use: a counter that is read at the entry and written back at
 * the exit, a register of who is inside, and a journal of both, all on a Redis of its own that has no faults. The
 * journal is written in the same transaction as the action it records, so that a killed process leaves no doubt about
 * what it did.
 *
 * A reader only reads the counter, and compares it at the exit. If there are fencing tokens, the counter refuses a
 * write with a lower token than it has seen.
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
 * @typedef {object} Stay what is known of a stay when it begins
 * @property {string} lock
 * @property {string} owner
 * @property {boolean} [shared]
 * @property {bigint} askedAt
 * @property {{ at: bigint, before: "all" | "readers" }} [place]
 * @property {bigint} enteredAt taken before `remaining`, so that a pause between the two makes the stay shorter
 * @property {number} lease ms
 * @property {boolean} [renewed] whether the watchdog renews the hold
 * @property {number} remaining ms until the hold is over, as the hold itself says
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
   * Call it in the tick of the grant.
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
    // The wall clock has whole milliseconds, so by it the hold may be over one millisecond sooner.
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
   * Call it before the unlock. The instant is taken before the hold is asked, so that a pause between the two makes
   * the stay shorter.
   * @param {{ id: string, lock: string, shared: boolean, fencing: string, value: number, deadline: bigint }} section
   * @param {{ isHeld: boolean }} hold
   * @param {boolean} sure whether the counter is used: it is not if the hold may be over when the command arrives
   */
  async leave({ id, lock, shared, fencing, value, deadline }, hold, sure) {
    const leftAt = now();
    const entry = hold.isHeld ? `L ${id} ${leftAt}` : `X ${id} ${deadline}`;
    const write = sure && !shared ? String(value + 1) : "";
    const expect = sure && shared ? String(value) : "";
    await this.#redis.leaveSection(...this.#keys(lock), `writes:${lock}`, id, entry, write, expect, fencing);
  }

  /** This process stood still, so a server may have taken its waiters for dead. */
  async stalled(from, until) {
    await this.#redis.rpush(`stalls:${this.#process}`, `${from} ${until}`);
  }

  /** A timer of this process was this many nanoseconds late. */
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
