/**
 * Random sums in a script that does nothing else: how Lua 5.1 treats numbers, as texts, as keys of tables and as
 * replies.
 */

import type { Random } from "../../support/random.js";
import type { Case } from "./calls.js";
import { NUMERALS, TERMS } from "./vocabulary.js";

const SCRIPT = `local replies = {}
local function add(fn)
  local fine, value = pcall(fn)
  -- The sign of what is no number is nobody's business.
  if not fine then value = 'fails' elseif value ~= value then value = 'nan' end
  replies[#replies + 1] = type(value)
  replies[#replies + 1] = value or 'nothing'
  if type(value) == 'number' then
    replies[#replies + 1] = value .. ''
    replies[#replies + 1] = tostring(value)
    replies[#replies + 1] = table.concat({value, -value}, ' ')
    redis.call('SET', 'n' .. #replies, value)
  end
end
local a, b = ARGV[1], ARGV[2]
local x, y = tonumber(a), tonumber(b)
add(function() return x end)
add(function() return a + b end)
add(function() return x * y end)
add(function() return a - b end)
add(function() return x / y end)
add(function() return -a end)
add(function() return math.floor(x) end)
add(function() return math.max(a, b, 0) end)
add(function() return math.min(x, y) end)
add(function() return math.floor(x) ~= 0 and math.abs(x) < 2 ^ 63 and string.format('%.0f', math.floor(x)) end)
add(function() return #a * x end)
add(function() return (string.find(a, b, 1, true)) end)
add(function() return x < y and a .. b end)
local list = {a, b, 'c'}
add(function() return list[x] end)
for i = 1, math.min(x or 0, 3) do
  list[#list + 1] = i .. ':' .. i * (y or 2 ^ 31)
end
replies[#replies + 1] = table.concat(list, ',')
return replies`;

export function randomSums(random: Random, now: number): Case {
  const one = () => random.pick([random.pick(NUMERALS), String(random.pick(TERMS)), sum(random, now)]);
  return { setUp: [], command: ["EVAL", SCRIPT, "0", one(), one()] };
}

/** A number of any size, sign and precision. */
function sum(random: Random, now: number): string {
  const fine = now * 1_000 + random.below(1_000);
  const value = random.pick([random.next(), random.below(1_000), now, fine, 2 ** 53]);
  return String(random.pick([value, -value, value * 10 ** (random.below(40) - 20)]));
}
