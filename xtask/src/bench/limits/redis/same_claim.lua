-- The keys that A2 writes when a head is claimed, and its event. KEYS: rows, heads, log chunk. ARGV: head
-- and row, member, its score, place of the event.
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[3])
return redis.call('LINDEX', KEYS[3], ARGV[5])
