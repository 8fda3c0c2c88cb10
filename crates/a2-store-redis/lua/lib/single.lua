-- Whether the batch is one event with at most one target and no long payload, and for which of the lanes.

local is_single, lane = events == 1 and bigs == 0 and singles <= 1, nil
for at = 1, lanes do
  if #args[lane_args + at] == 3 then
    local record = values[2 + at]
    is_single = is_single and not lane and singles == 0 and (not record or #record == 24)
    lane = at
  end
end
