-- The keys that A2 writes when a lane's only head is completed. KEYS: session, rows, heads. ARGV: head and
-- row, member, then the session's fields with their values.
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('ZREM', KEYS[3], ARGV[3])
redis.call('HSET', KEYS[1], unpack(ARGV, 4))
