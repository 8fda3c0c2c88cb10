-- A session's cursors: $1 session, after the cursor ($2 consumer, $3 rank, $4 name, $5 index; an empty
-- consumer for the first page), $6 at most so many. rank: 0 lane, 1 log, 2 event cursor.
--
-- Rows: the columns of a2_answer_1. First part 0 with the log's head and marker; then part 3, by
-- consumer, rank, name, index: n the position, idx the head (null: idle) with its dispatch state.
select * from a2.a2_cursors_2(
  $1::text, $2::text, $3::integer, $4::text, $5::bigint, $6::integer)
