// Changes of the Lua scripts that no test can notice, and why.
const PTTL = "if redis.call('PTTL', key) < tonumber(ttl) then";
const TOMBSTONE = "if redis.call('EXISTS', tombstone) == 1 then";
const FREE = "if redis.call('EXISTS', lock, tombstone) == 0 then";
const ABSENCE = "return -redis.call('EXISTS', lock)";
const forbidden = "EXISTS fails by lack of permission only, and another EXISTS reports that";
/** The changes of one line that `edits` make, each by a text and what takes its place, in these scripts ("*": in all). */
function same(why, scripts, line, ...edits) {
  const changed = edits.map(([from, to]) => line.replace(from, () => to) || "(removed)");
  return changed.flatMap((to) => scripts.split(" ").map((script) => [`${script}: ${line} -> ${to}`, why]));
}

/** Lines whose call may as well be a pcall. */
function caught(...lines) {
  const why = "it fails by lack of permission only, and another call of that command tells";
  return lines.flatMap((line) => same(why, "*", line, ["redis.call", "redis.pcall"]));
}

const TICK = "a millisecond more or less";
const SHORTCUT = "spares a look at all readers, which comes to the same";
const ENDS = "this script ends all holds of an owner, and so sets no terms";
const NO_SUCH = "there is no such key";
const ONLY_WHETHER = "only asked whether any were dropped, or not asked at all";
const ENDERS = "read/force read/reenter read/renew";
const MODAL = "read/extend read/reenter read/release read/renew read/undo write/acquire write/force";
const GONE = [/.*/, ""];
const SERVER_TIME = "return time[1] * 1000 + math.floor(time[2] / 1000)";
const LEFT = "return update_hold(lock, tombstone, owner, count, left) and 1 or -redis.call('EXISTS', lock)";
const OVER = "return redis.call('EXISTS', tombstone) == 1 and 1 or -redis.call('EXISTS', lock)";
const READ_OVER = "return redis.call('EXISTS', tombstone) == 1 and 1 or why_not_reading(lock, owner)";
const OTHERS = "others = redis.call('HEXISTS', lock, owner .. ':write') == 0";
const UPDATE = "elseif redis.call('PEXPIRE', hold, term) == 0 then";
const SET = "redis.call('SET', hold, '1', 'PX', term)";
const HSET = "redis.call('HSET', lock, owner, #terms)";
const WHOLE = "local whole = value == '0' or string.find(value, '^%-?[1-9]%d*$') and #value <= 17";
const NUMBER = "return whole and tonumber(value) or redis.call('DECRBY', key, 0)";
const MARK = "redis.call('SET', marker, outcome, 'PX', ttl)";
const WAITS = "if patience ~= '0' then";

/** Changes that no test can notice, as `script: line -> line`, and why. */
const EQUIVALENT = new Map([
  ...caught(
    "redis.call('DEL', lock)",
    "redis.call('DEL', hold)",
    "redis.call('DEL', tombstone)",
    "redis.call('DEL', count)",
    "redis.call('HDEL', lock, owner)",
    "redis.call('PEXPIRE', lock, left)",
    "redis.call('PEXPIRE', lock, longest)",
    "redis.call('ZREM', timeouts, head)",
    "redis.call('ZREM', timeouts, owner)",
    "redis.call('ZREM', alive, head)",
    "redis.call('ZREM', alive, owner)",
    "redis.call('ZADD', timeouts, 'XX', 'GT', term, waiter)",
    "redis.call('ZADD', timeouts, before and before + grace or term, owner)",
    "redis.call('ZADD', alive, now + patience, waiter)",
    "redis.call('ZADD', alive, now + patience, owner)",
    "local timeout = redis.call('ZSCORE', timeouts, waiter)",
    "local before = last and redis.call('ZSCORE', timeouts, last)",
    "local head = redis.call('LINDEX', queue, 0)",
    "head = redis.call('LINDEX', queue, 0)",
    "local last = redis.call('LINDEX', queue, -1)",
    "local free = redis.call('EXISTS', lock) == 0",
    "local mode = redis.call('HGET', lock, 'mode')",
    "local most = redis.call('PTTL', lock)",
    "local fields = redis.call('HGETALL', lock)",
    "local current = redis.call('HGET', lock, owner) or 0",
    "local count = tonumber(redis.call('HGET', lock, owner) or 0)",
    "reply[2] = redis.call('PTTL', lock)",
    "if redis.call('PTTL', key) < tonumber(ttl) then",
    "if redis.call('PTTL', hold) < tonumber(lease) then",
    "if redis.call('EXISTS', lock, tombstone) == 0 then",
    "if redis.call('EXISTS', lock) == 0 then",
    "if redis.call('EXISTS', counter) == 0 then",
    "if redis.call('EXISTS', tombstone) == 1 then",
    "if left ~= '0' and redis.call('EXISTS', tombstone) == 1 then",
    "if held or redis.call('EXISTS', tombstone) == 1 then",
    "if undone == 1 and redis.call('EXISTS', lock) == 0 then",
    "if withdrawn == 1 and redis.call('EXISTS', writers) == 0 then",
    "if patience ~= '0' and redis.call('HEXISTS', lock, owner) == 0 then",
    "if redis.call('HEXISTS', lock, field) == 1 then",
    "if redis.call('HGET', lock, 'mode') == 'write' then",
    "if reads_left(lock, owner, redis.call('HGET', lock, owner)) == 0 then",
    "end_write(lock, field, reads_left(lock, owner, redis.call('HGET', lock, owner)))",
    "others = redis.call('EXISTS', lock) == 1",
    "return -redis.call('EXISTS', lock)",
    "return {0, redis.call('PTTL', lock)}",
    "return {1, tonumber(redis.call('HGET', lock, field) or 0), redis.call('PTTL', lock)}",
    "return {1, reads_left(lock, owner, count) > 0 and count or 0, redis.call('PTTL', lock)}",
    OTHERS,
    OVER,
    READ_OVER,
    LEFT,
    LEFT.replace("owner", "field"),
    UPDATE,
  ),
  ...same("the reply is the same error", "*", "return redis.call('EXISTS', tombstone)", ["call", "pcall"]),
  ...same("sets a TTL to what it is", "*", PTTL, ["<", "<="]),
  ...same("sets a TTL to what it is", "*", "if redis.call('PTTL', hold) < tonumber(lease) then", ["<", "<="]),
  ...same("sets the counter to what it is", "*", "if token < floor then", ["<", "<="]),
  ...same("counts the same two keys", "fenced/acquire", FREE, ["lock, tombstone", "tombstone, lock"]),
  ...same("Redis replies 1 for true", "*", LEFT, [" and 1", ""]),
  ...same("Redis replies 1 for true", "*", LEFT.replace("owner", "field"), [" and 1", ""]),
  ...same("Redis replies 1 for true", "*", OVER, [" and 1", ""]),
  ...same("Redis replies 1 for true", "*", READ_OVER, [" and 1", ""]),
  ...same(TICK, "*", SERVER_TIME, ["/ 1000", "/ 1001"], ["/ 1000", "/ 999"]),
  ...same(TICK, "*", "if deadline and deadline > now then", ["> now", ">= now"]),
  ...same(TICK, "*", "if wait > 0 then", ["0", "1"]),
  ...same(TICK, "*", "if longest > 0 then", ["0", "1"]),
  ...same(
    TICK,
    "*",
    "return {1, reads_left(lock, owner, count) > 0 and count or 0, redis.call('PTTL', lock)}",
    ["> 0", "> 1"],
  ),
  ...same(TICK, "*", "local term = now + math.max(0, redis.call('PTTL', lock)) + grace", ["(0", "(1"]),
  ...same("PEXPIRE 0 deletes as well", "*", "if longest > 0 then", [">", ">="], ["longest > 0", "true"]),
  ...same(
    "only the first of them is used",
    "*",
    "local last = redis.call('ZREVRANGE', writers, 0, 0, 'WITHSCORES')[2]",
    ["0, 0", "0, 1"],
  ),
  ...same(
    "only the first of them is used",
    "*",
    "local latest = redis.call('ZREVRANGE', timeouts, 0, 0, 'WITHSCORES')[2]",
    ["0, 0", "0, 1"],
  ),

  // numbers
  ...same(
    "a number of that many digits is read either way",
    "*",
    WHOLE,
    ["<=", "<"],
    ["17", "16"],
    ["17", "18"],
  ),
  ...same(
    "Redis refuses to count that far before the first write",
    "semaphore/acquire semaphore/drain",
    WHOLE,
    [" and #value <= 17", ""],
  ),
  ...same("the reply is the same error", "counter/state", NUMBER, ["call", "pcall"]),
  ...same("the number's own SET has told", "counter/try-set", MARK, ["call", "pcall"]),
  ...same("only asked whether it is a number", "semaphore/release", NUMBER, [" and tonumber(value)", ""]),
  ...same("only asked whether it is a number", "semaphore/release", "return 0", ["0", "false"], ["0", "1"]),
  ...same("reached by what is no number, which is refused in the same words", "*", NUMBER, [
    "key, 0",
    "0, key",
  ]),

  // fair
  ...same(ONLY_WHETHER, "*", "dropped = dropped + 1", GONE, ["1", "0"], ["1", "2"], ["+", "-"]),
  ...same(ONLY_WHETHER, "*", "return dropped", GONE, ["dropped", "false"]),
  ...same(
    ONLY_WHETHER,
    "*",
    "local dropped = free and prune(queue, timeouts, alive, now, grace) or 0",
    [" or 0", ""],
    ["or 0", "or 1"],
  ),
  ...same("whoever is refused a free lock is behind a head", "fair/acquire", "if head then", [
    "head",
    "true",
  ]),
  ...same("no waiter is named PUBLISH or SPUBLISH", "fair/acquire", "for i = 6, #ARGV do", ["6", "5"]),
  ...same("overwritten before it is used", "fair/acquire", "local reply = {0, 0}", ["0}", "1}"]),
  ...same(
    "who is granted a lock without a place is in none of these keys",
    "fair/acquire",
    "if has_ticket then",
    ["has_ticket", "true"],
  ),
  ...same(
    "who is granted a lock without waiting leaves no queue",
    "fair/acquire",
    WAITS,
    ["patience ~= '0'", "true"],
    ["'0'", "'1'"],
    ["'0'", "''"],
  ),
  ...same(
    "it has just set the tombstone",
    "fair/release",
    "if held or redis.call('EXISTS', tombstone) == 1 then",
    ["held or ", ""],
  ),

  // read and write
  ...same(
    "0 counts as 1 does",
    "*",
    "local base = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'",
    ["1,", "0,"],
  ),
  ...same(NO_SUCH, "*", "for number = 1, tonumber(count) or 0 do", ["= 1", "= 0"], ["or 0", "or 1"]),
  ...same(
    NO_SUCH,
    "read/state",
    "local count = tonumber(redis.call('HGET', lock, owner) or 0)",
    ["or 0", "or 1"],
    [" or 0", ""],
  ),
  ...same(
    NO_SUCH,
    "read/reenter",
    "local current = redis.call('HGET', lock, owner) or 0",
    ["or 0", "or 1"],
    [" or 0", ""],
  ),
  ...same("values are no owners", "*", "for i = 1, #fields, 2 do", ["2", "1"]),
  ...same("a count is never empty", "*", OTHERS, ["HEXISTS", "HSTRLEN"]),
  ...same(
    "a count is never empty",
    "*",
    "if patience ~= '0' and redis.call('HEXISTS', lock, owner) == 0 then",
    ["HEXISTS", "HSTRLEN"],
  ),
  ...same(
    SHORTCUT,
    "*",
    "if most > 0 and longest >= most then",
    [/most > .*most/, "false"],
    [">= most", "> most"],
    [/most > 0 and longest >= most/, "most > 0"],
  ),
  ...same(SHORTCUT, "*", "return longest", GONE),
  ...same(
    SHORTCUT,
    "*",
    "if most < 0 or longest < most then",
    [/most < .* most/, "true"],
    ["longest < most", "longest <= most"],
  ),
  ...same("whoever comes here has looked at the mode", MODAL, "return 0", GONE, ["0", "1"], ["0", "false"]),
  ...same(TICK, "*", "if most > 0 and longest >= most then", ["> 0", "> 1"], ["> 0", ">= 0"]),
  ...same(TICK, "*", "if most < 0 or longest < most then", ["< 0", "<= 0"], ["< 0", "< 1"]),
  ...same("only asked whether it is 0", "read/state read/force write/acquire", "return longest", [
    "longest",
    "false",
  ]),
  ...same(
    SHORTCUT,
    "read/state read/force read/reenter read/renew write/acquire write/force",
    "local most = redis.call('PTTL', lock)",
    ["PTTL", "TTL"],
  ),
  ...same("nobody asks", "read/release write/release read/extend", "return true", GONE, ["true", "false"]),
  ...same("nil is as good", "*", "return false", GONE),
  ...same(
    "the owner does not write, or this would not be asked",
    "read/reenter",
    "elseif mode == 'write' then",
    ["mode == 'write'", "false"],
  ),
  ...same("the owner does not write, or this would not be asked", "read/reenter", OTHERS, [
    "lock, owner .. ':write'",
    "owner .. ':write', lock",
  ]),
  ...same("of the first hold, which may be one too many", "read/reenter", "current = 0", ["0", "1"]),
  ...same(ENDS, ENDERS, "local term = terms[number] or '0'", ["terms[number] or ", ""]),
  ...same(ENDS, ENDERS, "if term == '0' then", ["term == '0'", "true"]),
  ...same(ENDS, ENDERS, "if #terms == 0 then", ["#terms == 0", "true"]),
  ...same(
    ENDS,
    ENDERS,
    UPDATE,
    [/redis.*0/, "true"],
    [/redis.*0/, "false"],
    ["== 0", "~= 0"],
    ["== 0", "== 1"],
    ["PEXPIRE", "EXPIRE"],
    ["PEXPIRE", "PERSIST"],
    ["hold, term", "term, hold"],
  ),
  ...same(
    ENDS,
    ENDERS,
    SET,
    GONE,
    ["'1'", "'0'"],
    ["PX", "EX"],
    ["'PX', term", "term, 'PX'"],
    ["call", "pcall"],
  ),
  ...same(
    ENDS,
    ENDERS,
    HSET,
    GONE,
    ["owner, #terms", "#terms, owner"],
    ["#terms", "terms"],
    ["call", "pcall"],
  ),
  ...same("the keys have lapsed", "read/reenter", "redis.call('DEL', hold)", GONE, ["DEL", "PTTL"]),
  ...same("the keys have lapsed", "read/reenter read/renew", "local hold = read_hold(lock, owner, number)", [
    "owner, number",
    "number, owner",
  ]),
  ...same("there is no field to delete", "read/renew", "if count then", ["count", "true"]),

  ...["acquire", "reenter", "renew"].map((name) => [
    `lock/${name}: ${PTTL} -> ${PTTL.replace("<", "<=")}`,
    "sets a TTL to what it is",
  ]),
  [
    `lock/acquire: ${FREE} -> ${FREE.replace("lock, tombstone", "tombstone, lock")}`,
    "counts the same two keys",
  ],
  [`lock/acquire: ${FREE} -> ${FREE.replace("call", "pcall")}`, forbidden],
  ...["acquire", "extend", "release"].map((name) => [
    `lock/${name}: ${TOMBSTONE} -> ${TOMBSTONE.replace("call", "pcall")}`,
    forbidden,
  ]),
  ...["extend", "reenter", "release"].map((name) => [
    `lock/${name}: ${ABSENCE} -> ${ABSENCE.replace("call", "pcall")}`,
    forbidden,
  ]),
  ["lock/release: return 1 -> (removed)", "the rest of the script finds the tombstone, and replies the same"],
]);

/** Of all equivalents, those that are none of these changes. @param {string[]} lines */
export function staleIn(lines) {
  const used = new Set(lines.flatMap((line) => [line, forAnyScript(line)]));
  return [...EQUIVALENT.keys()].filter((line) => !used.has(line));
}

function forAnyScript(line) {
  return line.replace(/^[^:]*/, "*");
}

/** Why a change cannot be noticed. */
export function reasonFor(line) {
  return EQUIVALENT.get(line) ?? EQUIVALENT.get(forAnyScript(line));
}
