-- Some of a namespace's fields that have not expired. KEYS: as for set_presence. Where to go on ('0': at
-- the beginning). Answers 'rows', where the rest begins ('0': there is none), and for each field its
-- name and record. A field may come twice; one that is there throughout comes.

local page = call('HSCAN', KEYS[1], take(), 'COUNT', 256)
local answer, found = { 'rows', page[1] }, page[2]
for at = 1, #found, 2 do
  if from_bytes('>i8', found[at + 1]) > now then
    answer[#answer + 1] = found[at]
    answer[#answer + 1] = found[at + 1]
  end
end
return answer
