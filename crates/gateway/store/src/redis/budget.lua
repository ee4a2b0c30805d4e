-- One tenant's purse. KEYS: the purse (a hash: window, spent, reserved, next id) and its open reservations
-- (a sorted set: "id:amount" by the time at which the lease ends).
-- ARGV: time or '', operation, limit, window, lease (microseconds), amount, id, actual.
-- Answers: granted, id, spent, reserved, time to the reset (microseconds).
local now = clock(ARGV[1])
local operation, limit, window, lease = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local amount, id, actual = tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[8])
local whole = function(number) return string.format('%.0f', number) end

local kept = redis.call('HMGET', KEYS[1], 'window', 'spent', 'reserved', 'id')
local at, spent, reserved = tonumber(kept[1]) or 0, tonumber(kept[2]) or 0, tonumber(kept[3]) or 0
local last = tonumber(kept[4]) or 0
local index = math.floor(now / window)
if index > at then at, spent = index, 0 end

-- A gateway that died gives nothing back: its reservations end with their leases.
for _, open in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', whole(now))) do
  reserved = math.max(0, reserved - tonumber(string.match(open, ':(%d+)$')))
  redis.call('ZREM', KEYS[2], open)
end

local granted = 0
if operation == 'reserve' and spent + reserved + amount <= limit then
  granted, last, reserved = 1, last + 1, reserved + amount
  redis.call('ZADD', KEYS[2], whole(now + lease), whole(last) .. ':' .. whole(amount))
elseif operation == 'settle' then
  if redis.call('ZREM', KEYS[2], id .. ':' .. whole(amount)) == 1 then
    reserved = math.max(0, reserved - amount)
  end
  granted, spent = 1, spent + actual
end

local left = math.min(window, math.max(0, (at + 1) * window - now))
redis.call('HSET', KEYS[1], 'window', whole(at), 'spent', whole(spent), 'reserved', whole(reserved),
  'id', whole(last))
local lives = whole(math.ceil((left + lease) / 1000) + 1)
redis.call('PEXPIRE', KEYS[1], lives)
redis.call('PEXPIRE', KEYS[2], lives)
return {granted, last, spent, reserved, left}
