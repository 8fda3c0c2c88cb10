-- A job is done.
redis.call('HDEL', KEYS[2], ARGV[1], ARGV[1] .. ':held')
