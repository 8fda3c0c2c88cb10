-- An event with what a queue needs besides: log, counter, ready set, state, message.
redis.call('XADD', KEYS[1], '*', 'id', ARGV[1], 'type', ARGV[2], 'at', ARGV[3], 'payload', ARGV[4])
local index = redis.call('INCR', KEYS[2])
redis.call('ZADD', KEYS[3], index, ARGV[1])
redis.call('HSET', KEYS[4], ARGV[1], ARGV[3])
redis.call('PUBLISH', ARGV[5], ARGV[1])
return index
