//! Any bytes as a profile, JSON or YAML: every error is a message, never a panic or a hang.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Err(problems) = plimsoll_profile::parse(input) {
        assert!(!problems.to_string().is_empty());
    }
});
