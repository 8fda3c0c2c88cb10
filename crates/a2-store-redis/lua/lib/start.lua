-- What every script begins with: its arguments and the time.
--
-- The second key is the partition's sessions, the last one never exists: while the slot migrates the
-- server then answers TRYAGAIN before the script starts. ARGV: the time in ms (empty: the server's),
-- the command that publishes (empty: none), its channel, the store's source handle, then what the
-- operation takes.
--
-- All checks stand before the first write, so that a script that fails has written nothing.

local call, pack, from_bytes, format = redis.call, struct.pack, struct.unpack, string.format
local floor = math.floor

local argument = 4
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
local base = string.sub(KEYS[2], 1, -2)
