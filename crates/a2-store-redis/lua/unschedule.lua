-- Removes a timer by its key. Answers 'unscheduled' with whether there was one, 1 or 0.

if not remove_timer(take()) then
  return { 'unscheduled', 0 }
end
return { 'unscheduled', 1 }
