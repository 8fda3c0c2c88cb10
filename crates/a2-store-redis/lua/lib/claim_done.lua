-- Ends a claim that was plain.

if claimed then
  return claimed
end
