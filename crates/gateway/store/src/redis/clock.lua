-- Microseconds since 1970: the server's own clock, one for all gateways, or the time that a test gives.
local function clock(given)
  if given ~= '' then return tonumber(given) end
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
