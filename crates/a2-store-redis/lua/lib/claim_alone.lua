-- The claim is what the script is for.

local claim_at = 3
