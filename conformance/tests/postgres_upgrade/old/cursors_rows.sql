-- What a deployment of 0.21 or 0.22 left. In the session `s: 'x' {y} %` a clear at 3, events 1 and 2 below
-- it; every kind of cursor in every state; every column has a value somewhere.

insert into a2_events (session_id, idx, event_id, event_type, payload, cause, created_at) values
  ('s: ''x'' {y} %', 1, 'e1', 'a', '1', null, 1001),
  ('s: ''x'' {y} %', 2, 'e2', 'a', '2', null, 1002),
  ('s: ''x'' {y} %', 3, 'e3', 'a2.clear', 'null', null, 1003),
  ('s: ''x'' {y} %', 4, 'e4', 'a', '{"n":12345678901234567890,"f":1.0,"u":"\u0000\ud800","e":[{},[]],"e":1e400}',
    null, 1004),
  ('s: ''x'' {y} %', 5, 'e5', 'b "q"', '"a  b"', null, 1005),
  ('s: ''x'' {y} %', 6, 'e6', 'a', '[1, 2 , {"a" : "x y"} ]', null, 1006),
  ('s: ''x'' {y} %', 7, 'r1', 'a', '7', '{"consumer":"done:1","lane":null,"index":4,"attempt":1}', 1007),
  ('s: ''x'' {y} %', 8, 'r2', 'b "q"', '8', '{"consumer":"done:1","lane":null,"index":4,"attempt":1}', 1007),
  ('s: ''x'' {y} %', 9, 'r3', 'a', '9',
    '{"consumer":"lanes","lane":"L {1}","index":4,"attempt":2,"kind":"lane"}', 1009),
  ('s: ''x'' {y} %', 10, 'e10', 'a', '10',
    '{"consumer":"logs","lane":"audit","index":8,"attempt":3,"kind":"log"}', 1010),
  ('s: ''x'' {y} %', 11, 'e11', 'a', '11', '{"index":4,"attempt":1}', 1011),
  ('s: ''x'' {y} %', 12, 'e12', 'a', '12', null, 1012),
  ('other', 1, 'o1', 'a', 'true', null, 2001);

insert into a2_cursors (session_id, cursor_key, consumer, epoch, lane, kind, position, head, types,
  attempt_count, first_claimed_at, last_claimed_at, claim_holder, claim_expires_at, failure_count,
  last_failed_at, last_failed_attempt, last_error, failed_at, completed_idx, completed_attempt,
  returned_event_ids)
values
  -- Event cursors: below the clear, leased, held for a retry, dead, done, skipped.
  ('s: ''x'' {y} %', 'event:1', 'events', 1, null, 'event', 0, 1, null, 1, 1100, 1100, 'w', 1130, 0,
    null, null, null, null, null, null, null),
  ('s: ''x'' {y} %', 'event:4', 'events', 1, null, 'event', 3, 4, null, 2, 5000, 5100, 'w ''1''', 9000, 1,
    5050, 1, E'bo\x01om', null, null, null, null),
  ('s: ''x'' {y} %', 'event:5', 'events', 1, null, 'event', 4, 5, null, 3, 5000, 5200, null, 8000, 2,
    5250, 3, 'later', null, null, null, null),
  ('s: ''x'' {y} %', 'event:6', 'events', 1, null, 'event', 5, 6, null, 4, 5000, 5300, null, null, 3,
    5350, 4, 'never', 5350, null, null, null),
  ('s: ''x'' {y} %', 'event:4', 'done:1', 1, null, 'event', 3, null, null, 0, null, null, null, null, 0,
    null, null, null, null, 4, 1, RETURNED_1_2),
  -- Lanes: a queue, a run before it; the empty name, never claimed; a dead letter before a queue; done.
  ('s: ''x'' {y} %', 'lane:L {1}', 'lanes', 1, 'L {1}', 'lane', 3, 4, null, 9, 9, 9, 'gone', 9, 9,
    9, 9, 'an old run', null, null, null, null),
  ('s: ''x'' {y} %', 'lane:L {1}', 'lanes', 2, 'L {1}', 'lane', 5, 6, null, 1, 5000, 5000, 'w2', 5500, 0,
    null, null, null, null, 4, 2, RETURNED_3),
  ('s: ''x'' {y} %', 'lane:', 'lanes', 1, '', 'lane', 3, 10, null, 0, null, null, null, null, 0,
    null, null, null, null, null, null, null),
  ('s: ''x'' {y} %', 'lane:dead', 'lanes', 1, 'dead', 'lane', 3, 11, null, 2, 5000, 5100, null, null, 2,
    5150, 2, 'poison', 5150, null, null, null),
  ('s: ''x'' {y} %', 'lane:idle', 'lanes', 3, 'idle', 'lane', 12, null, null, 0, null, null, null, null, 0,
    null, null, null, null, 12, 5, RETURNED_NONE),
  -- Logs: of every type with a head; typed and idle, behind the log's head; gone on after its last
  -- completion; never moved; only from before the clear.
  ('s: ''x'' {y} %', 'log:audit', 'logs', 7, 'audit', 'log', 8, 9, null, 1, 5000, 5000, 'w3', 9500, 0,
    null, null, null, null, 8, 3, RETURNED_10),
  ('s: ''x'' {y} %', 'log:typed', 'logs', 1, 'typed', 'log', 8, null, TYPES, 0, null, null, null, null, 0,
    null, null, null, null, 5, 1, RETURNED_NONE),
  ('s: ''x'' {y} %', 'log:through', 'logs', 1, 'through', 'log', 10, 11, null, 0, null, null, null, null, 0,
    null, null, null, null, 7, 2, RETURNED_NONE),
  ('s: ''x'' {y} %', 'log:new', 'logs', 1, 'new', 'log', 12, null, null, 0, null, null, null, null, 0,
    null, null, null, null, null, null, null),
  ('s: ''x'' {y} %', 'log:old', 'logs', 1, 'old', 'log', 1, 2, null, 1, 1100, 1100, 'w', 1130, 0,
    null, null, null, null, 1, 1, RETURNED_NONE),
  ('other', 'lane:l', 'lanes', 1, 'l', 'lane', 0, 1, null, 0, null, null, null, null, 0,
    null, null, null, null, null, null, null);

insert into a2_lane_events (session_id, consumer, lane, idx, done, completed_attempt, returned_event_ids) values
  ('s: ''x'' {y} %', 'lanes', 'L {1}', 2, false, null, null),
  ('s: ''x'' {y} %', 'lanes', 'L {1}', 4, true, 2, RETURNED_3),
  ('s: ''x'' {y} %', 'lanes', 'L {1}', 5, true, null, null),
  ('s: ''x'' {y} %', 'lanes', 'L {1}', 6, false, null, null),
  ('s: ''x'' {y} %', 'lanes', 'L {1}', 7, false, null, null),
  ('s: ''x'' {y} %', 'lanes', 'L {1}', 9, false, null, null),
  ('s: ''x'' {y} %', 'lanes', '', 10, false, null, null),
  ('s: ''x'' {y} %', 'lanes', 'dead', 11, false, null, null),
  ('s: ''x'' {y} %', 'lanes', 'dead', 12, false, null, null),
  ('s: ''x'' {y} %', 'lanes', 'idle', 12, true, 5, RETURNED_NONE),
  ('other', 'lanes', 'l', 1, false, null, null);

insert into a2_snapshots (session_id, reducer_name, up_to_index, state) values
  ('s: ''x'' {y} %', 'sum ''r''', 9, '{"s": 9, "z":"\u0000"}'),
  ('s: ''x'' {y} %', 'old', 2, '2');
insert into a2_snapshot_history (session_id, reducer_name, up_to_index, state) values
  ('s: ''x'' {y} %', 'sum ''r''', 4, '4'),
  ('s: ''x'' {y} %', 'sum ''r''', 5, '[5,  5]'),
  ('s: ''x'' {y} %', 'sum ''r''', 6, '6');
insert into a2_snapshot_pins (session_id, event_index, reducer_name, up_to_index, consumer, cursor_key) values
  ('s: ''x'' {y} %', 4, 'sum ''r''', 5, 'events', 'event:4'),
  ('s: ''x'' {y} %', 6, 'sum ''r''', 6, 'events', 'event:6');
insert into a2_clears (session_id, clear_index) values ('s: ''x'' {y} %', 3);
insert into a2_presence (namespace, participant, field, value, seen, updated_at, expires_at) values
  ('n:1', 'p "2"', 'f', '{"a": 1}', 7, 5000, 4102444800000),
  ('n:1', 'p "2"', 'gone', '1', null, 5000, 5001);
