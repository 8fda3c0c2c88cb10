-- Ends a completion that was plain with its claim.

if claimed then
  return { outcome, claimed }
end
