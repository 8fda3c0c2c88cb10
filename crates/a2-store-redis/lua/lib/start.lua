-- What every script begins with: its arguments and the time.
--
-- KEYS: the operation's own key, and one that never exists: while the slot migrates the server then
-- answers TRYAGAIN or ASK before the script starts. ARGV: the time in ms (empty: the server's), the
-- command that publishes (empty: none), the store's source handle, then what the operation takes.
--
-- All checks stand before the first write, so that a script that fails has written nothing.
--
-- Functions are made anew in each call, and one costs the more the more locals are known to it: what is
-- nearly always done stands ahead of those that the rest needs, in few.

local call, pack, from_bytes, format = redis.call, struct.pack, struct.unpack, string.format
local sub, floor, concat = string.sub, math.floor, table.concat

local argument = 3
local function take()
  argument = argument + 1
  return ARGV[argument]
end

local now = tonumber(ARGV[1])
if not now then
  local time = call('TIME')
  now = time[1] * 1000 + floor(time[2] / 1000)
end

-- What the partition's keys begin with.
local base = sub(KEYS[2], 1, -6)

-- Which arguments name fields of the session's hash.
local first_field, last_field = 1, 0
-- What came of a completion, when the plain path has done it and left the claim.
local outcome
