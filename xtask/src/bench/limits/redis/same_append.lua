-- The keys that A2 writes when events are appended to one lane. KEYS: state, sessions, pending, log
-- chunk, the next one, ids, type, lanes, rows, the next chunk's, free, live counts. ARGV: now many
-- entries are for each chunk, how many links for each, whether the first event is the lane's head, the
-- indexes of the type, lane and its record, consumer, first index, member, session, channel and message,
-- head, live; then entries, ids with indexes, links.
local at = 16
local function some(count)
  at = at + count
  return unpack(ARGV, at - count + 1, at)
end
local first, second = tonumber(ARGV[1]), tonumber(ARGV[2])
local links, more = tonumber(ARGV[3]), tonumber(ARGV[4])
redis.call('RPUSH', KEYS[4], some(first))
if second > 0 then
  redis.call('RPUSH', KEYS[5], some(second))
end
redis.call('HSET', KEYS[6], some(2 * (first + second)))
redis.call('APPEND', KEYS[7], ARGV[6])
redis.call('HSET', KEYS[8], ARGV[7], ARGV[8])
if links > 0 then
  redis.call('HSET', KEYS[9], some(2 * links))
end
if more > 0 then
  redis.call('HSET', KEYS[10], some(2 * more))
end
if ARGV[5] == '1' then
  redis.call('ZADD', KEYS[11], ARGV[10], ARGV[11])
  redis.call('HINCRBY', KEYS[12], ARGV[9], 1)
  redis.call('ZADD', KEYS[3], 0, ARGV[12])
end
redis.call('HSET', KEYS[1], 'head', ARGV[15], 'clear', 0, 'live', ARGV[16], 'pinned', 0)
redis.call('PUBLISH', ARGV[13], ARGV[14])
