//! Tests of the binary: exit codes, files, messages, signals.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

mod audit;
mod cache;
mod compare;
mod comparison;
mod completions;
mod demo;
mod failure;
mod first_request;
mod full_disk;
mod gate;
mod gateway;
mod host;
mod http;
mod interrupt;
mod join;
mod knee;
mod limits;
mod live_view;
mod mock;
mod policy;
mod policy_server;
mod profile;
mod profiles;
mod report;
mod run;
mod secrets;
mod streams;
mod suite;
mod suite_targets;
mod support;
mod terminal;
mod timeline;
mod usage;
mod versus;
mod watch;
