-- Claims heads; see claim_heads.

local answer = claim_heads(take_claim())
if answer[1] == 'claimed' then
  finish()
end
return answer
