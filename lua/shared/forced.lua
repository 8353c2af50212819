-- What a forced unlock leaves. It ends the wire ids of others, so it writes their tombstones, which say that nothing
-- was found. It also writes a marker of its own call with these ids.

-- The answer of the first run of this call; false if this is the first.
local function forced_before(marker)
  local before = redis.call('GET', marker)
  local owners = before and {}
  for owner in string.gmatch(before or '', '%S+') do
    owners[#owners + 1] = owner
  end
  return owners
end

-- `tombstones`: what the names of tombstones begin with.
local function note_forced(marker, owners, tombstones, ttl)
  -- When memory is short, a first write that needs none lets the next ones pass.
  redis.call('DEL', marker)
  redis.call('SET', marker, table.concat(owners, ' '), 'PX', ttl)
  for _, owner in ipairs(owners) do
    redis.call('SET', tombstones .. owner, '0', 'PX', ttl)
  end
end
