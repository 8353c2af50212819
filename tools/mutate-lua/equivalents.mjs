// Changes of the Lua files that no test can notice, and why. What was shared by several files is told once, under "*".

/** The changes of one line that `edits` make, each by a text and what takes its place, in these files ("*": in all). */
function same(why, files, line, ...edits) {
  const changed = edits.map(([from, to]) => line.replace(from, () => to) || "(removed)");
  return changed.flatMap((to) => files.split(" ").map((file) => [`${file}: ${line} -> ${to}`, why]));
}

/** Lines whose call may as well be a pcall. */
function caught(...lines) {
  const why = "it fails by lack of permission only, and another call of that command tells";
  return lines.flatMap((line) => same(why, "*", line, ["redis.call", "redis.pcall"]));
}

const GONE = [/.*/, ""];
const TICK = "a millisecond more or less";
const NO_SUCH = "there is no such key";
const PAIRS = "fields and values come in pairs";
const SHORTCUT = "spares commands, and comes to the same";
const ONLY_WHETHER = "only asked whether any were dropped, or not asked at all";
const FIRST_ONLY = "only the first of them is used";
const TRUE = "Redis replies 1 for true";
const NOTHING = "moves by nothing";
const SAME_KEYS = "counts the same two keys";
const NEVER_EMPTY = "a count is never empty";

const FREE = "if redis.call('EXISTS', lock, tombstone) == 0 then";
const FREE_FOR = "local possible = redis.call('EXISTS', lock, successorTombstone) == 0";
const LEFT = "return update_hold(lock, tombstone, owner, count, left) and 1 or why_not_held(lock)";
const OTHERS = "others = redis.call('HEXISTS', lock, owner .. ':write') == 0";
const HAS_SUCCESSOR = "if redis.call('HEXISTS', lock, successor) == 0 then";
const HAS_WRITER = "if redis.call('HEXISTS', lock, successorField) == 0 then";
const WHOLE = "local whole = value == '0' or string.find(value, '^%-?[1-9]%d*$') and #value <= 17";
const NUMBER = "return whole and tonumber(value) or redis.call('DECRBY', key, 0)";
const WAITS = "if aliveFor ~= '0' then";
const SPARE = "local spare = (redis.call('ZSCORE', timeouts, waiter) or now) - now - position * grace";
const AGAIN = "if #again == CHUNK or i == 1 then";
const LONGER = "if before < most - 1 and sees_other_reader(lock, owner) then";
const HAS_LOCK = "if not again and (mode or redis.call('EXISTS', lock) == 1) then";
const INSPECTED =
  "local waiters = redis.call('TYPE', queue).ok == 'list' and redis.call('LRANGE', queue, 0, -1) or {}";
const KIND =
  "if redis.call('TYPE', lock).ok == 'string' and is_integer(redis.call('GETRANGE', lock, 0, 20)) then";
const IN_TIME = "return latest == '0' or redis.call('TIME')[1] * 1000 <= tonumber(latest)";
const REFUSED =
  "if string.find(why, \"can't run this command\", 1, true) or string.find(why, 'no permissions to run', 1, true) then";
/** Of server/refused: a command is called, by the name that is told, with other arguments. */
const OTHER_ARGUMENTS =
  /^server\/refused: check\('\w+', redis\.pcall\((?<command>'\w+'), .*\)\) -> check\('\w+', redis\.pcall\(\k<command>, /;
const OOM_WRITE = "redis.pcall('ZREM', leases[1], '')";

/** Changes that no test can notice, as `file: line -> line`, and why. */
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
    "redis.call('ZADD', alive, now + aliveFor, waiter)",
    "redis.call('ZADD', alive, now + aliveFor, owner)",
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
    "if aliveFor ~= '0' and redis.call('HEXISTS', lock, owner) == 0 then",
    "if redis.call('HEXISTS', lock, field) == 1 then",
    "if redis.call('HGET', lock, 'mode') == 'write' then",
    "if reads_left(lock, owner, redis.call('HGET', lock, owner)) == 0 then",
    "end_write(lock, field, reads_left(lock, owner, redis.call('HGET', lock, owner)))",
    "others = redis.call('EXISTS', lock) == 1",
    "return {0, redis.call('PTTL', lock)}",
    "return {1, tonumber(redis.call('HGET', lock, field) or 0), redis.call('PTTL', lock)}",
    "return {1, reads_left(lock, owner, count) > 0 and count or 0, redis.call('PTTL', lock)}",
    "return -redis.call('EXISTS', lock)",
    "redis.call('DEL', queue)",
    "elseif redis.call('PEXPIRE', hold, term) == 0 then",
    "redis.call('ZREM', timeouts, unpack(left_by))",
    "redis.call('ZREM', alive, unpack(left_by))",
    "redis.call('SET', tombstone, '1', 'PX', tombstoneTtl)",
    "redis.call('ZADD', leases, 'XX', 'GT', now + lease, member)",
    "local left = redis.call('PTTL', lock)",
    "local before, last = reads_left(lock, owner, redis.call('HGET', lock, owner))",
    "local fields = redis.call('HRANDFIELD', lock, 10, 'WITHVALUES')",
    "local timeout = tonumber(redis.call('ZSCORE', timeouts, head) or now)",
    "for position, waiter in ipairs(redis.call('LRANGE', queue, 0, -1)) do",
    "return {outcome, tonumber(redis.call('TIME')[1])}",
    "return create(lock, lease, successor, '1') or {1, 1, redis.call('GET', counter)}",
    "return {1, 1, redis.call('GET', counter)}",
    "if redis.call('EXISTS', number) == 1 then",
    "if redis.call('EXISTS', marker) == 1 then",
    "if redis.call('EXISTS', tombstone) == 0 then",
    "if redis.call('EXISTS', permits) == 0 or free ~= wanted then",
    "if ask ~= '0' and aliveFor ~= '0' and redis.call('EXISTS', successorTombstone) == 0 then",
    "if redis.call('HGET', lock, 'mode') ~= 'write' then",
    "return all_reads_left(lock) == 0 and redis.call('HLEN', lock) > 1 and redis.call('DEL', lock) == 1",
    IN_TIME,
    INSPECTED,
    KIND,
    "local free = number_in(permits) > 0 and redis.call('GET', permits) or '0'",
    "redis.call('SET', permits, wanted, 'KEEPTTL')",
    SPARE,
    FREE_FOR,
    HAS_SUCCESSOR,
    HAS_WRITER,
    HAS_LOCK,
    OTHERS,
  ),
  ...same("sets a TTL to what it is", "*", "if redis.call('PTTL', key) < tonumber(ttl) then", ["<", "<="]),
  ...same("sets a TTL to what it is", "*", "if redis.call('PTTL', hold) < tonumber(lease) then", ["<", "<="]),
  ...same("sets the counter to what it is", "*", "if token < floor then", ["<", "<="]),
  ...same(SAME_KEYS, "*", FREE, ["lock, tombstone", "tombstone, lock"]),
  ...same(SAME_KEYS, "*", FREE_FOR, ["lock, successorTombstone", "successorTombstone, lock"]),
  ...same("nil is as good", "*", "return nil", ["nil", "false"]),
  ...same("nil is as good", "*", "return false", GONE),
  ...same(TRUE, "*", LEFT, [" and 1", ""]),
  ...same(TRUE, "*", LEFT.replace("owner", "field"), [" and 1", ""]),
  ...same(TRUE, "*", "return ended == call and 1 or 0", [" and 1", ""]),
  ...same(NEVER_EMPTY, "*", HAS_SUCCESSOR, ["HEXISTS", "HSTRLEN"]),
  ...same(NEVER_EMPTY, "*", HAS_WRITER, ["HEXISTS", "HSTRLEN"]),
  ...same(NEVER_EMPTY, "*", OTHERS, ["HEXISTS", "HSTRLEN"]),
  ...same(NEVER_EMPTY, "*", "if aliveFor ~= '0' and redis.call('HEXISTS', lock, owner) == 0 then", [
    "HEXISTS",
    "HSTRLEN",
  ]),
  ...same(
    TICK,
    "*",
    "return time[1] * 1000 + math.floor(time[2] / 1000)",
    ["/ 1000", "/ 1001"],
    ["/ 1000", "/ 999"],
  ),
  ...same(TICK, "*", "if deadline and deadline > now then", ["> now", ">= now"]),
  ...same(TICK, "*", "if wait > 0 then", ["0", "1"]),
  ...same(TICK, "*", "if longest > 0 then", ["0", "1"]),
  ...same(TICK, "*", "if ttl > 0 then", ["0", "1"], [">", ">="]),
  ...same(TICK, "*", IN_TIME, ["<=", "<"]),
  ...same(TICK, "*", "if now + lease < tonumber(ends) then", ["<", "<="]),
  ...same(
    TICK,
    "*",
    "return {1, reads_left(lock, owner, count) > 0 and count or 0, redis.call('PTTL', lock)}",
    ["> 0", "> 1"],
  ),
  ...same(TICK, "*", "local term = now + math.max(0, redis.call('PTTL', lock)) + grace", ["(0", "(1"]),
  ...same("PEXPIRE 0 deletes as well", "*", "if longest > 0 then", [">", ">="], ["longest > 0", "true"]),
  ...same(FIRST_ONLY, "*", "local last = redis.call('ZREVRANGE', writers, 0, 0, 'WITHSCORES')[2]", [
    "0, 0",
    "0, 1",
  ]),
  ...same(FIRST_ONLY, "*", "local latest = redis.call('ZREVRANGE', timeouts, 0, 0, 'WITHSCORES')[2]", [
    "0, 0",
    "0, 1",
  ]),
  ...same(FIRST_ONLY, "*", "local ends = redis.call('ZRANGE', leases, 0, 0, 'WITHSCORES')[2]", [
    "0, 0",
    "0, 1",
  ]),

  // which commands are refused
  ...same("in the words of Redis 6.2", "server/refused", REFUSED, [/ or .*true\)/, ""]),
  ...same(
    "it begins with NOPERM",
    "server/refused",
    REFUSED,
    ['command", 1', 'command", 2'],
    ['command", 1', 'command", 0'],
    ["run', 1", "run', 2"],
    ["run', 1", "run', 0"],
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
  ...same("reached by what is no number, which is refused in the same words", "*", NUMBER, [
    "key, 0",
    "0, key",
  ]),
  ...same("any write does, to be the first", "permits/renew", OOM_WRITE, ["leases[1], ''", "'', leases[1]"]),

  ...same("its failure is the reply", "semaphore/drain", "local earlier = redis.call('GET', marker)", [
    "redis.call",
    "redis.pcall",
  ]),
  ...same(
    "of none there is nothing to take",
    "semaphore/drain",
    "local free = number_in(permits) > 0 and redis.call('GET', permits) or '0'",
    ["> 0", ">= 0"],
  ),

  // hashes that are no lock
  ...same(PAIRS, "shared/foreign", "local mode = #fields > 2 and redis.call('HGET', lock, 'mode')", [
    "2",
    "3",
  ]),
  ...same(PAIRS, "shared/foreign", "if #fields > 2 and not is_shared(mode) then", ["2", "3"]),

  // numbers
  ...same("21 characters are no number", "lock/inspect", KIND, ["20)", "21)"]),
  ...same(
    "21 characters are no number",
    "counter/inspect",
    "local value = redis.call('GETRANGE', number, 0, 20)",
    ["20)", "21)"],
  ),
  ...same(
    "where it stands goes before its text",
    "counter/inspect",
    "error('ERR value is not an integer or out of range', 0)",
    ["0)", "1)"],
  ),
  ...same(
    "where it stands goes before its text",
    "semaphore/release",
    "error('ERR increment or decrement would overflow', 0)",
    ["0)", "1)"],
  ),

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
  ...same(TICK, "shared/queue", "if spare > 0 then", ["0", "1"]),
  ...same(NOTHING, "shared/queue", "if spare > 0 then", [">", ">="]),
  ...same(TICK, "shared/queue", "if unused > 0 then", ["0", "1"]),
  ...same(NOTHING, "shared/queue", "if unused > 0 then", [">", ">="], ["unused > 0", "true"]),
  ...same("a key that is not there is not foreign", "fair/acquire", "if not free then", ["not free", "true"]),
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
    ["aliveFor ~= '0'", "true"],
    ["'0'", "'1'"],
    ["'0'", "''"],
  ),
  ...same(
    "it has just set the tombstone",
    "fair/release",
    "if held or redis.call('EXISTS', tombstone) == 1 then",
    ["held or ", ""],
  ),
  ...same("another part at a time", "fair/undo", "local CHUNK = 500", ["500", "501"], ["500", "499"]),
  ...same("another part at a time", "fair/undo", AGAIN, [/#.* == 1/, "true"], ["==", "~="]),
  ...same("reads on from where it was", "fair/undo", "if missing == 0 then", ["missing == 0", "true"]),
  ...same(NOTHING, "fair/undo", "if turns > 0 then", ["turns > 0", "true"], [">", ">="]),
  ...same("there is nothing at 0", "fair/undo", "for i = #staying, 1, -1 do", ["1", "0"]),

  // read and write
  ...same(
    "0 counts as 1 does",
    "*",
    "local base = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'",
    ["1,", "0,"],
  ),
  ...same(NO_SUCH, "*", "for number = 1, tonumber(count) or 0 do", ["= 1", "= 0"], ["or 0", "or 1"]),
  ...same(NO_SUCH, "read/renew", "for number = 1, last do", ["1", "0"]),
  ...same(NO_SUCH, "shared/reads", "for number = 1, math.max(last, #terms) do", ["1", "0"]),
  ...same(NO_SUCH, "shared/reads", "local longest, last = 0, 0", [/0$/, "1"]),
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
  ...same("there is no reply 0", "read/renew", "for i = 1, owners do", ["1", "0"]),
  ...same("there is no half pair", "read/acquire", "for i = 1, (#ARGV - 1) / 2 do", ["- 1", "- 0"]),
  ...same("values are no owners", "*", "for i = 1, #fields, 2 do", [", 2", ", 1"]),
  ...same(SHORTCUT, "read/acquire", HAS_LOCK, ["mode or ", ""]),
  ...same(SHORTCUT, "read/acquire", "if not known then", ["not known", "true"]),
  ...same(SHORTCUT, "read/acquire", "known = true", GONE),
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
  ...same(TICK, "*", "if most > 0 and longest >= most then", ["> 0", "> 1"], ["> 0", ">= 0"]),
  ...same(TICK, "*", "if most < 0 or longest < most then", ["< 0", "<= 0"], ["< 0", "< 1"]),
  ...same(TICK, "shared/reads", LONGER, ["<", "<="], ["- 1", "- 2"], ["- 1", "- 0"]),
  ...same(TICK, "shared/reads", "return left > 0 and left or 2 ^ 52", [">", ">="], ["> 0", "> 1"]),
  ...same(
    TICK,
    "shared/reads",
    "if fields[i] ~= owner and reads_left(lock, fields[i], fields[i + 1]) > 0 then",
    ["> 0", "> 1"],
  ),
  ...same(
    "a few more or less",
    "shared/reads",
    "local fields = redis.call('HRANDFIELD', lock, 10, 'WITHVALUES')",
    ["10", "11"],
    ["10", "9"],
  ),
  ...same("of the first hold, which may be one too many", "read/reenter", "current = 0", ["0", "1"]),
  ...same("there is no field to delete", "read/renew", "if count then", ["count", "true"]),

  ["lock/release: return 1 -> (removed)", "the rest of the script finds the tombstone, and replies the same"],
]);

/** Of all equivalents, those that are none of these changes. @param {string[]} lines */
export function staleIn(lines) {
  const used = new Set(lines.flatMap((line) => [line, forAnyFile(line)]));
  return [...EQUIVALENT.keys()].filter((line) => !used.has(line));
}

function forAnyFile(line) {
  return line.replace(/^[^:]*/, "*");
}

/** Why a change cannot be noticed. */
export function reasonFor(line) {
  if (OTHER_ARGUMENTS.test(line)) return "only asked whether the command may be called";
  return EQUIVALENT.get(line) ?? EQUIVALENT.get(forAnyFile(line));
}
