-- A session. KEYS: the session (a hash, which lives as long as the session), all sessions (a sorted set of ids by
-- the time at which they end), those of its owner (the same).
-- ARGV: time or '', operation, id, owner, and of the operation:
--   create: most sessions, ttl (milliseconds), created_at, expires_at, metadata, most of the owner
--   count: most calls
-- Answers: 0 for none, 1 for done, 2 for refused; calls.
local now = clock(ARGV[1])
local operation, id, owner = ARGV[2], ARGV[3], ARGV[4]
local whole = function(number) return string.format('%.0f', number) end

if operation == 'create' then
  local ttl = tonumber(ARGV[6])
  -- Each creation frees a few that have ended. Left to Redis they would go many at once, and everybody would wait.
  local prefix = string.sub(KEYS[1], 1, -1 - #id)
  local ended = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', whole(now), 'LIMIT', 0, 8)
  for _, old in ipairs(ended) do redis.call('DEL', prefix .. old) end
  if #ended > 0 then redis.call('ZREM', KEYS[2], unpack(ended)) end
  if redis.call('ZCOUNT', KEYS[2], '(' .. whole(now), '+inf') >= tonumber(ARGV[5]) then return {2, 0} end
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', whole(now))
  if redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[10]) then return {2, 0} end
  redis.call('HSET', KEYS[1], 'owner', owner, 'created_at', ARGV[7], 'expires_at', ARGV[8],
    'metadata', ARGV[9], 'calls', 0)
  redis.call('PEXPIRE', KEYS[1], whole(ttl))
  for _, sessions in ipairs({KEYS[2], KEYS[3]}) do
    redis.call('ZADD', sessions, whole(now + ttl * 1000), id)
    if redis.call('PTTL', sessions) < ttl then redis.call('PEXPIRE', sessions, whole(ttl)) end
  end
  return {1, 0}
end

local kept = redis.call('HMGET', KEYS[1], 'owner', 'calls')
if kept[1] ~= owner then return {0, 0} end
local calls = tonumber(kept[2]) or 0
if operation == 'count' then
  if calls >= tonumber(ARGV[5]) then return {2, calls} end
  return {1, redis.call('HINCRBY', KEYS[1], 'calls', 1)}
end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], id)
redis.call('ZREM', KEYS[3], id)
return {1, calls}
