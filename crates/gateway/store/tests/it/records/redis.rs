//! The stories in a real Redis, and what is left when it goes away.

use super::{APPROVALS, Bench, LONG, RULES, in_redis, race_for_approvals, race_for_calls};
use crate::redis_server::Redis;
use crate::support::block_on;
use plimsoll_gateway_store::{Backend, FailureMode, RecordError, RedisSettings, Verdict};
use std::time::Duration;

fn backend(server: &Redis, prefix: &str) -> Backend {
    let mut settings = RedisSettings::new(server.url());
    settings.timeout = Duration::from_secs(10);
    settings.prefix = format!("{prefix}:");
    Backend::redis(settings).unwrap()
}

#[test]
fn the_stories_are_the_same_in_redis() {
    let server = Redis::start();
    in_redis(|prefix| backend(&server, prefix));
    let keys = server.cli(&["KEYS", "*"]);
    assert!(keys.lines().count() > 10, "{keys}");
    for key in keys.lines() {
        let lives: i64 = server.cli(&["PTTL", key]).trim().parse().unwrap();
        assert!(lives != -1, "`{key}` would stay for ever");
    }
}

#[test]
fn sixty_four_racers_get_one_outcome_in_redis() {
    let server = Redis::start();
    race_for_approvals(&backend(&server, "race"), 200);
}

#[test]
#[ignore = "takes longer: `scripts/test --all` runs it"]
fn sixty_four_racers_get_one_outcome_in_redis_ten_thousand_times() {
    let server = Redis::start();
    race_for_approvals(&backend(&server, "race"), 10_000);
}

#[test]
fn sixty_four_racers_make_no_more_calls_than_allowed_in_redis() {
    let server = Redis::start();
    race_for_calls(&backend(&server, "race"));
}

#[test]
fn two_gateways_see_the_same_records() {
    let server = Redis::start();
    block_on(async {
        let mut one = Bench::new(&backend(&server, "same"), true).await;
        let two = Bench::new(&backend(&server, "same"), true).await;
        let session = one.session(&RULES, "acme", LONG).await.unwrap();
        assert_eq!(two.read("acme", session).await, one.read("acme", session).await);
        let approval = one.approval(&APPROVALS, "acme", LONG).await.unwrap();
        two.decide("acme", approval, Verdict::Approve).await.unwrap();
        assert_eq!(one.look("acme", approval).await, two.look("acme", approval).await);
    });
}

#[test]
fn without_redis_nothing_is_made_or_decided_in_either_mode() {
    let mut server = Redis::start();
    for on_loss in [FailureMode::Open, FailureMode::Closed] {
        block_on(async {
            let mut settings = RedisSettings::new(server.url());
            (settings.timeout, settings.on_loss) = (Duration::from_secs(10), on_loss);
            let mut bench = Bench::new(&Backend::redis(settings).unwrap(), true).await;
            let session = bench.session(&RULES, "acme", LONG).await.unwrap();
            let approval = bench.approval(&APPROVALS, "acme", LONG).await.unwrap();
            server.kill();
            let lost = RecordError::Unavailable;
            assert_eq!(bench.session(&RULES, "acme", LONG).await.unwrap_err(), lost);
            assert_eq!(bench.read("acme", session).await.unwrap_err(), lost);
            let called = bench.store.count_call(1, &RULES, "acme", session).await;
            assert_eq!(called.unwrap_err(), lost);
            let decided = bench.decide("acme", approval, Verdict::Approve).await;
            assert_eq!(decided.unwrap_err(), lost);
            assert_eq!(bench.look("acme", approval).await.unwrap_err(), lost);
        });
        server.restart();
    }
}
