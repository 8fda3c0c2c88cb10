-- What a deployment of the handlers releases left: every column has a value somewhere.

insert into a2_events (session_id, idx, event_id, event_type, payload, cause, created_at, lane, lane_ready,
  processed_at, processed_by_attempt, returned_event_ids, first_claimed_at, last_claimed_at, attempt_count,
  failure_count, last_failed_at, last_failed_attempt, last_error)
values
  ('order ''17'' {x}', 1, 'evt:1', 'order.placed', '{"total":[1.0,{}],"note":"a [b] \" c"}', null, 1001,
    'a "lane"', true, 1200, 2, '{evt:2,evt:3}', 1100, 1150, 2, 1, 1120, 1, 'boom'),
  ('order ''17'' {x}', 2, 'evt:2', 'order.paid', '[]', '{"index":1,"attempt":2}', 1200,
    null, true, 1300, 1, '{evt:4}', 1250, 1250, 1, 0, null, null, null),
  ('order ''17'' {x}', 3, 'evt:3', 'order.paid', 'null', '{"index":1,"attempt":2}', 1200,
    'b', true, 1310, 1, '{}', 1260, 1260, 1, 0, null, null, null),
  ('order ''17'' {x}', 4, 'evt:4', 'order.sent', '"x"', '{"index":2,"attempt":1}', 1300,
    null, true, 1400, 1, null, 1350, 1350, 1, 0, null, null, null),
  ('Überall', 1, 'evt:5', 'old', '1', null, 2000, null, true, 2100, 1, null, 2050, 2050, 1, 0,
    null, null, null),
  ('Überall', 2, 'evt:6', 'a2.clear', 'null', null, 2200, null, true, null, null, null, null, null, 0, 0,
    null, null, null),
  ('Überall', 3, 'evt:7', 'new', '2', '{"index":1,"attempt":1}', 2300, null, true, 2400, 1, null,
    2350, 2350, 1, 0, null, null, null);
insert into a2_snapshots values
  ('order ''17'' {x}', 'sum', 3, '{"sum":[1,2]}'), ('Überall', 'sum', 1, '0'), ('Überall', 'n', 3, '2');
insert into a2_snapshot_pins values ('order ''17'' {x}', 4, 'sum', 3);
