-- Ends an append that was plain.

if pending then
  return { 'appended', head, clear, now, pending }
end
