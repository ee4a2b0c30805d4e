//! The binary from outside: exit codes, files, messages, signals.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

mod bench;
mod demo;
mod failure;
mod first_request;
mod gatekeeper;
mod gateway;
mod host;
mod http;
mod interrupt;
mod mock;
mod policy;
mod profile;
mod profiles;
mod report;
mod run;
mod secrets;
mod suite;
mod usage;
