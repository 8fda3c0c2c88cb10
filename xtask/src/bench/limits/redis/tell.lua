-- An event is appended and told.
redis.call('XADD', KEYS[1], '*', 'id', ARGV[1], 'type', ARGV[2], 'at', ARGV[3], 'payload', ARGV[4])
redis.call('PUBLISH', ARGV[5], ARGV[1])
