-- Approvals. KEYS: all approvals (a sorted set of ids by the time from which each has an outcome: of a pending one
-- the time at which it expires), the pending ones of the owner (a sorted set of ids by the time at which they
-- expire). Each approval is a hash below the prefix; it lives as long as its outcome is kept.
-- ARGV: time or '', operation, prefix, id, owner, and of the operation:
--   create: most approvals, ttl, keep (milliseconds), action, details, session, created_at, expires_at
--   decide: keep (milliseconds), state, reason
--   list: most
-- Answers a list: first 'ok', 'none', 'full' or 'decided' and the number of pending ones, then approvals.
local now = clock(ARGV[1])
local operation, prefix, id, owner = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local whole = function(number) return string.format('%.0f', number) end

-- Time is an outcome: a pending one whose time is over is expired.
local function read(of)
  local kept = redis.call('HMGET', prefix .. of, 'owner', 'expires', 'state', 'action', 'details', 'session',
    'created_at', 'expires_at', 'decided_at', 'reason')
  if kept[1] ~= owner then return nil end
  if kept[3] == 'pending' and tonumber(kept[2]) <= now then
    kept[3], kept[9] = 'expired', kept[8]
  end
  return {of, kept[3], kept[4], kept[5], kept[6], kept[7], kept[8], kept[9], kept[10]}
end

local function remove(of)
  redis.call('DEL', prefix .. of)
  redis.call('ZREM', KEYS[1], of)
end

-- A set lives as long as the last of its members.
local function lives(key, millis)
  if redis.call('PTTL', key) < millis then redis.call('PEXPIRE', key, whole(millis)) end
end

if operation == 'create' then
  local most, ttl, keep = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
  for _, old in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', whole(now - keep * 1000), 'LIMIT', 0, 100)) do
    remove(old)
  end
  while redis.call('ZCARD', KEYS[1]) >= most do
    local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
    if #first == 0 or tonumber(first[2]) > now then return {{'full', '0'}} end
    remove(first[1])
  end
  local expires = whole(now + ttl * 1000)
  redis.call('HSET', prefix .. id, 'owner', owner, 'expires', expires, 'state', 'pending', 'action', ARGV[9],
    'details', ARGV[10], 'session', ARGV[11], 'created_at', ARGV[12], 'expires_at', ARGV[13], 'decided_at', '',
    'reason', '')
  redis.call('PEXPIRE', prefix .. id, whole(ttl + keep))
  redis.call('ZADD', KEYS[1], expires, id)
  lives(KEYS[1], ttl + keep)
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', whole(now))
  redis.call('ZADD', KEYS[2], expires, id)
  lives(KEYS[2], ttl)
  return {{'ok', '0'}, read(id)}
end

if operation == 'list' then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', whole(now))
  local out = {{'ok', whole(redis.call('ZCARD', KEYS[2]))}}
  -- By score: a range of ranks would take 0 for all.
  for _, pending in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '+inf', 'LIMIT', 0, ARGV[6])) do
    local approval = read(pending)
    if approval then out[#out + 1] = approval end
  end
  return out
end

local approval = read(id)
if not approval then return {{'none', '0'}} end
if operation == 'get' then return {{'ok', '0'}, approval} end
if approval[2] ~= 'pending' then return {{'decided', '0'}, approval} end
local keep = tonumber(ARGV[6])
redis.call('HSET', prefix .. id, 'state', ARGV[7], 'decided_at', whole(math.floor(now / 1000)), 'reason', ARGV[8])
redis.call('PEXPIRE', prefix .. id, whole(keep))
redis.call('ZADD', KEYS[1], whole(now), id)
lives(KEYS[1], keep)
redis.call('ZREM', KEYS[2], id)
return {{'ok', '0'}, read(id)}
