//! The layers, through a running gateway between raw clients and a scripted provider.

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
