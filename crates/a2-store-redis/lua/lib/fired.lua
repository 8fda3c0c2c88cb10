-- The batch that timers fire.

-- A number for each name, in the order in which they come.
local function numbered(names)
  local numbers = {}
  for at, name in ipairs(names) do
    numbers[name] = at
  end
  return function(name)
    if not numbers[name] then
      names[#names + 1] = name
      numbers[name] = #names
    end
    return numbers[name]
  end
end

-- Events as a batch, with what is served and declared in the one at hand.
local function batch_of(found)
  local served_names, declared_logs = {}, {}
  for at = 1, consumers do
    served_names[at] = args[consumers_at + at]
  end
  for at = 1, 4 * logs do
    declared_logs[at] = args[log_args + at]
  end
  local ids, tails, long = {}, {}, {}
  local type_names, lane_names, single_names = {}, {}, {}
  local type_of, lane_of, single_of = numbered(type_names), numbered(lane_names), numbered(single_names)
  local consumer_of = numbered(served_names)
  local of_type, of_lane, of_single = {}, {}, {}
  for at, event in ipairs(found) do
    local place = pack('>I2', at)
    ids[at] = 'i' .. event.id
    tails[at] = pack('>I2I2I4I4', #event.id, #event.type, 0, #event.payload) .. event.id .. event.type
    if #event.payload > BIG then
      long[#long + 1] = pack('>I4', at) .. event.payload
    else
      tails[at] = tails[at] .. event.payload
    end
    add(of_type, type_of(event.type), place)
    for _, target in ipairs(event.targets or {}) do
      local stop = string.find(target, '\0', 2, true)
      local consumer = pack('>I2', consumer_of('s' .. sub(target, 2, stop - 1)))
      if sub(target, 1, 1) == '1' then
        local lane = lane_of('n' .. sub(target, 2))
        of_lane[lane] = of_lane[lane] or { consumer }
        add(of_lane, lane, place)
      else
        local single = single_of(sub(target, 2, stop - 1))
        of_single[single] = of_single[single] or { consumer }
        add(of_single, single, place)
      end
    end
  end
  local all = {}
  local function append(list)
    local size = #all
    for at = 1, #list do
      all[size + at] = list[at]
    end
    return size
  end
  ids_at = append(ids)
  lanes_at = append(lane_names)
  consumers_at = append(served_names)
  tails_at = append(tails)
  types_at = #all
  for at, name in ipairs(type_names) do
    append({ name, concat(of_type[at]) })
  end
  local function each_concat(lists)
    local size = #all
    for at, list in ipairs(lists) do
      all[size + at] = concat(list)
    end
    return size
  end
  lane_args = each_concat(of_lane)
  single_args = each_concat(of_single)
  big_args = append(long)
  cause_args = #all
  log_args = append(declared_logs)
  args, events, lanes, consumers, types = all, #found, #lane_names, #served_names, #type_names
  singles, bigs, causes = #single_names, #long, 0
  local fields = {}
  for at = 1, events + lanes + consumers do
    fields[at] = all[at]
  end
  local state = values[1]
  values = #fields > 0 and get_many(KEYS[1], fields) or {}
  -- As if the state had been asked for with them.
  table.insert(values, 1, state)
  read_fields()
end
