//! A build without the feature `redis`.

use plimsoll_gateway_store::{Backend, RedisSettings};

#[test]
fn a_build_without_redis_says_so_and_names_the_command_that_brings_it() {
    let refused = Backend::redis(RedisSettings::new("redis://:secret@127.0.0.1:6379")).unwrap_err();
    let text = refused.to_string();
    for part in ["has no Redis client", "--features redis"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("secret"), "{text}");
}
