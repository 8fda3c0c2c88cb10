-- The keys that A2 writes when a lane's only head is completed. KEYS: state, pending, rows, held, lanes,
-- live counts. ARGV: head and row, member, lane and its record, consumer, session, head.
redis.call('HSET', KEYS[3], ARGV[1], ARGV[2])
redis.call('ZREM', KEYS[4], ARGV[3])
redis.call('HSET', KEYS[5], ARGV[4], ARGV[5])
redis.call('HINCRBY', KEYS[6], ARGV[6], -1)
redis.call('HSET', KEYS[1], 'head', ARGV[8], 'clear', 0, 'live', 0, 'pinned', 0)
redis.call('ZREM', KEYS[2], ARGV[7])
