-- A batch of new events that no log cursor is declared for, and that may be appended whatever the log's
-- head is.

local is_plain = logs == 0 and causes == 0 and ARGV[5] == '' and ARGV[6] == ''
for at = 2, events + 1 do
  is_plain = is_plain and not values[at]
end
is_plain = is_plain and head + events <= 9007199254740991
