-- Checks all limits, then counts in all or in none. KEYS: one for each limit. ARGV: time or '', then for
-- each limit its algorithm, requests and window in microseconds.
-- Answers: allowed, index, remaining, reset, retry (microseconds), of the limit that speaks for all.
local now = clock(ARGV[1])
local whole = function(number) return string.format('%.0f', number) end
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min
-- Of a sliding window.
local slices = 31

-- Two or three numbers kept as a string.
local function read(key)
  local kept = redis.call('GET', key)
  if not kept then return 0, 0, 0 end
  local a, b, c = string.match(kept, '^(%d+) (%d+) ?(%d*)$')
  return tonumber(a), tonumber(b), tonumber(c) or 0
end

local function write(key, lives, ...)
  local numbers = {...}
  for i = 1, #numbers do numbers[i] = whole(numbers[i]) end
  redis.call('SET', key, table.concat(numbers, ' '), 'PX', whole(max(1, ceil(lives / 1000))))
end

-- Each gives: allowed, remaining, reset, retry, and what counts the request.
local count = {}

-- Kept: the newest slice, then the counts of it and those before it, zeros at the end left out.
function count.sliding(key, limit, window)
  local kept = {}
  for number in string.gmatch(redis.call('GET', key) or '', '%d+') do kept[#kept + 1] = tonumber(number) end
  local at = table.remove(kept, 1) or 0
  local index = floor(now / window)
  local scaled = (now - index * window) * slices
  local slice, position = index * slices + floor(scaled / window), scaled % window
  if slice < at then slice, position = at, 0 end
  -- By age in slices; only the oldest is weighted, because it is leaving the window.
  local counts, total, newest, oldest = {}, 0, slices, 0
  for age = slices, 0, -1 do
    counts[age] = kept[age - (slice - at) + 1] or 0
    total = total + counts[age]
    if counts[age] > 0 then newest, oldest = age, max(oldest, age) end
  end
  local until_ = function(ahead, place) return max(0, ceil((ahead * window + place - position) / slices)) end
  local leaving = counts[slices]
  local taken = total - leaving + ceil(leaving * (window - position) / window)
  if taken < limit then
    local whole_window = until_(slices + 1, 0)
    return true, limit - taken - 1, whole_window, 0, function()
      counts[0] = counts[0] + 1
      local text = table.concat(counts, ' ', 0, oldest)
      redis.call('SET', key, whole(slice) .. ' ' .. text, 'PX', whole(max(1, ceil(whole_window / 1000))))
    end
  end
  local retry, counted = 0, total
  for ahead = 0, slices do
    leaving = counts[slices - ahead]
    counted = counted - leaving
    if counted < limit then
      local left = leaving == 0 and window or floor((limit - counted - 1) * window / leaving)
      retry = until_(ahead, window - min(window, left))
      break
    end
  end
  return false, 0, until_(slices + 1 - newest, 0), retry
end

function count.bucket(key, limit, window)
  local debt, at = read(key)
  debt = max(0, debt - max(0, now - at) * limit)
  local time = max(now, at)
  local left = limit * window - debt - window
  local reset = ceil((debt + window) / limit)
  local store = function() write(key, reset, debt + window, time) end
  if left >= 0 then return true, floor(left / window), reset, 0, store end
  return false, 0, ceil(debt / limit), ceil(-left / limit)
end

local spokesman, stores = nil, {}
for i, key in ipairs(KEYS) do
  local algorithm, limit, window = ARGV[3 * i - 1], tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1])
  local allowed, remaining, reset, retry, store = count[algorithm](key, limit, window)
  if not allowed then remaining = 0 else retry = 0 end
  stores[i] = store
  local told = {allowed and 1 or 0, i - 1, remaining, reset, retry}
  local heavier = not spokesman
  if spokesman then
    if told[1] ~= spokesman[1] then heavier = told[1] < spokesman[1]
    elseif allowed then heavier = remaining < spokesman[3]
    else heavier = retry > spokesman[5] end
  end
  if heavier then spokesman = told end
end
if spokesman[1] == 1 then
  for i = 1, #stores do stores[i]() end
end
return spokesman
