-- A claim of its own that is plain.

do
  local claimed = plain_claim(5)
  if claimed then
    return claimed
  end
end
