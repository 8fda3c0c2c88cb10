-- Removes a timer by its key. Answers 'unscheduled' with whether there was one, 1 or 0.

if not remove_timer(take()) then
  return { 'unscheduled', 0 }
end
forget_if_idle()
return { 'unscheduled', 1 }
