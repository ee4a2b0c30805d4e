//! The [`Plan`] of a run: immutable, with every default filled in.
//!
//! The engine executes it, whatever its origin: profiles are resolved to a plan, and programs build
//! one with [`PlanBuilder`].
//!
//! The crate has no sockets, profile files, results or terminal.

mod builder;
mod plan;
mod response_headers;
mod secret;
mod url;

pub use builder::{PlanBuilder, PlanError};
pub use plan::{
    ADDED, BudgetPlan, ConnectionLifetime, HttpPlan, HttpVersion, Instrument, Limits, Overflow,
    Plan, Replies, RetryAfter, Target, TargetRole, TlsPlan, VersusPlan, is_builtin, read_trace,
};
pub use plimsoll_protocol::names_credential;
pub use response_headers::ResponseHeaders;
pub use secret::{
    HeaderValue, REDACTED, Secret, is_shown_header, redacted_path, redacted_urls, secrets_of_query,
};
pub use url::{
    ConnectTo, ConnectToError, ProxyScheme, ProxyUrl, ProxyUrlError, ReachPlan, Scheme, TargetUrl,
    UrlFault,
};
