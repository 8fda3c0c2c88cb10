-- The first number of the list, with its payload; who holds it is recorded.
local id = redis.call('LPOP', KEYS[1])
local payload = redis.call('HGET', KEYS[2], id)
redis.call('HSET', KEYS[2], id .. ':held', ARGV[1])
return { id, payload }
