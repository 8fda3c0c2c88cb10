-- What came of a plain completion, and where its claim stands.

local claim_at
if pending then
  outcome = { 'completed', head, clear, now, pending }
  if ARGV[batch_end + 1] ~= '1' then
    return { outcome, false }
  end
  claim_at = batch_end + 1
end
