/**
 * What a process of the fleet writes down, and the witness that its locks guard.
 *
 * The journal is a file, because a file survives SIGKILL. Each call gets a line before it is made, and another one when
 * its answer arrives. Both have the time of the monotonic clock that all processes of a machine share.
 *
 * The witness is a Redis that no fault touches. It has a counter for each lock, which a holder reads when it enters and
 * writes back when it leaves. It also has a register of who is inside.
 */
import { openSync, writeSync } from "node:fs";

/** @returns {number} nanoseconds */
export function now() {
  return Number(process.hrtime.bigint());
}

export class Journal {
  #file;
  #process;
  #last = 0;

  constructor(path, process) {
    this.#file = openSync(path, "a");
    this.#process = process;
  }

  /**
   * Call it right before the call that it describes.
   * @param {string} call
   * @param {{ names: string[], at?: number, side?: string, permits?: number, of?: string, held?: boolean }} more
   * @returns {string} the id of the call
   */
  call(call, more) {
    const id = `${this.#process}:${++this.#last}`;
    this.note({ id, at: now(), call, ...more });
    return id;
  }

  /** Call it in the tick of the answer. */
  answer(id, answer) {
    this.note({ id, at: now(), ...answer });
  }

  note(line) {
    const plain = (_, value) => (typeof value === "bigint" ? String(value) : value);
    writeSync(this.#file, `${JSON.stringify(line, plain)}\n`);
  }
}

/** An exclusive visitor removes the visitors that it meets, because their processes may be dead. */
const ENTER = `
local inside, counter, fence = KEYS[1], KEYS[2], KEYS[3]
local id, mode, token = ARGV[1], ARGV[2], ARGV[3]
local met, all = {}, redis.call('HGETALL', inside)
for i = 1, #all, 2 do
  if not (mode == 'read' and all[i + 1] == 'read') then
    met[#met + 1] = all[i]
    if mode == 'read' or mode == 'write' then redis.call('HDEL', inside, all[i]) end
  end
end
redis.call('HSET', inside, id, mode)
if token ~= '-' and tonumber(token) > tonumber(redis.call('GET', fence) or 0) then redis.call('SET', fence, token) end
return {redis.call('GET', counter) or '0', table.concat(met, ',')}`;

/** A write with a lower token than the highest one so far is refused. */
const LEAVE = `
local inside, counter, fence, writes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, value, expected, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
redis.call('HDEL', inside, id)
if value ~= '' and (token == '-' or redis.call('GET', fence) == token) then
  redis.call('SET', counter, value)
  redis.call('INCR', writes)
end
return expected ~= '' and (redis.call('GET', counter) or '0') ~= expected and 1 or 0`;

export class Witness {
  #redis;

  /** @param {import("ioredis").Redis} redis */
  constructor(redis) {
    this.#redis = redis;
    redis.defineCommand("enterLock", { numberOfKeys: 3, lua: ENTER });
    redis.defineCommand("leaveLock", { numberOfKeys: 4, lua: LEAVE });
  }

  /**
   * @param {string} lock
   * @param {{ id: string, mode: string, token?: bigint }} visit `mode`: "read", "write", or a number of permits
   * @returns {Promise<{ lock: string, value: number, met: string[] }>}
   */
  async enter(lock, { id, mode, token = "-" }) {
    const [value, met] = await this.#redis.enterLock(...this.#keys(lock), id, mode, String(token));
    return { lock, value: Number(value), met: met === "" ? [] : met.split(",") };
  }

  /**
   * @param {{ lock: string, value: number }} entered
   * @param {boolean} sure whether the hold surely goes on until the command has arrived: otherwise nothing is written
   * @returns {Promise<boolean>} whether the value of a reader had changed meanwhile
   */
  async leave({ lock, value }, { id, mode, token = "-" }, sure) {
    const write = sure && mode === "write" ? value + 1 : "";
    const expected = sure && mode === "read" ? value : "";
    const keys = [...this.#keys(lock), `writes:${lock}`];
    return (await this.#redis.leaveLock(...keys, id, write, expected, String(token))) === 1;
  }

  #keys(lock) {
    return [`inside:${lock}`, `counter:${lock}`, `fence:${lock}`];
  }
}
