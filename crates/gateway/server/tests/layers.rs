//! The layers, through a running gateway between raw clients and a scripted provider.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::float_cmp,
    clippy::format_push_string,
    clippy::excessive_nesting,
    reason = "tests may fail loudly, go through tables of cases, and compare whole numbers that JSON made floats"
)]

mod layers {
    pub(crate) mod client;
    pub(crate) mod provider;
    pub(crate) mod start;

    mod audit;
    mod auth;
    mod budget;
    mod cache;
    mod dialects;
    mod errors;
    mod limits;
    mod persona;
    mod policy;
    mod redis;
    mod scrub;
}
