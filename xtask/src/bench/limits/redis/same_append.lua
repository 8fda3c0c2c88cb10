-- The keys that A2 writes when events are appended to one lane. KEYS: session, log chunk, the next one,
-- type, heads. ARGV: how many entries are for each chunk, how many of the session's fields with their
-- values, whether the first event is the lane's head, the indexes of the type, first index, member,
-- channel and message; then the entries and the fields.
local at = 9
local function some(count)
  at = at + count
  return unpack(ARGV, at - count + 1, at)
end
local second = tonumber(ARGV[2])
redis.call('RPUSH', KEYS[2], some(tonumber(ARGV[1])))
if second > 0 then
  redis.call('RPUSH', KEYS[3], some(second))
end
redis.call('APPEND', KEYS[4], ARGV[5])
if ARGV[4] == '1' then
  redis.call('ZADD', KEYS[5], ARGV[6], ARGV[7])
end
redis.call('HSET', KEYS[1], some(tonumber(ARGV[3])))
redis.call('PUBLISH', ARGV[8], ARGV[9])
