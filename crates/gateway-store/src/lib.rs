//! What gateways share and remember: rate limits, budgets, cached answers, in memory or in Redis.
