-- What is appended, and what is served. The fourth argument has in 4 bytes each: where the fields begin,
-- how many events, lanes, consumers, types, consumers of events' own cursors, declared logs, long payloads
-- and causes there are, how many of the consumers are served (2^32-1: everything), and which one a head
-- that is completed is of. The operation's own arguments stand between it and the fields.
--
-- From `first_field` on: fields of the session, which are asked for as they stand ('i' and each event's
-- id, 'n' and each lane's consumer, U+0000 and name, 's' and each consumer, those that are served first,
-- and '>' and the head that is completed, if there is one), and then for each event its entry without index and time; for each type its name and its events; for
-- each lane the number of its consumer in 2 bytes and its events; for each consumer of events' own
-- cursors the same; for each long payload its event's number in 4 bytes and the payload; the causes; for
-- each declared log its consumer, name, whether it backfills and its types. Events are numbers of 2 bytes
-- in order, all of them '*'. The lane of a head that is completed is the first one.

local args = ARGV
local ids_at, events, lanes, consumers, types, singles, logs, bigs, causes, served, own =
  from_bytes('>I4I4I4I4I4I4I4I4I4I4I4', args[4])
first_field = ids_at
ids_at = ids_at - 1
local lanes_at = ids_at + events
local consumers_at = lanes_at + lanes
local tails_at = consumers_at + consumers + (own > 0 and 1 or 0)
last_field = tails_at
local types_at = tails_at + events
local lane_args = types_at + 2 * types
local single_args = lane_args + lanes
local big_args = single_args + singles
local cause_args = big_args + bigs
local log_args = cause_args + causes
-- The last argument of the batch.
local batch_end = log_args + 4 * logs
argument = 4
local ZERO = '\0\0\0\0\0\0\0\0'
