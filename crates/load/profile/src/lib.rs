//! Profiles: parse, merge (file < environment < flags), check, and resolve to an immutable
//! [`Plan`](plimsoll_plan::Plan).
//!
//! ```text
//! bytes --parser--> values --layers--> values of file, environment and flags, each with its source
//!       --schema_check--> valid by the JSON Schema --spec--> ProfileFile
//!       --check--> valid altogether --resolve--> Plan
//! ```
//!
//! - [`Profile`]: a profile's text, from a file or built in ([`builtin_names`])
//! - [`load`]: all of the above; all problems are reported at once, each with its source, path,
//!   cause and fix
//! - [`schema`](fn@schema): the JSON Schema of [`ProfileFile`], for editors
//!
//! The crate has no sockets, results or terminal.

mod byte_size;
mod check;
mod env_vars;
mod error;
mod foreign_words;
mod judgeable;
mod layers;
mod parser;
mod path;
mod resolve;
mod schema;
mod schema_check;
mod shown_profile;
mod source;
mod spec;

/// Implements `Debug` with these fields only, because the others may have credentials.
macro_rules! debug_only {
    ($($type:ident: $($field:ident),*;)+) => {$(
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type))
                    $(.field(stringify!($field), &self.$field))*
                    .finish_non_exhaustive()
            }
        }
    )+};
}

debug_only! {
    Behaviour: ;
    KeyFlag: flag;
    Overrides: ;
    Profile: source;
    ProfileFile: name;
    ScenarioFile: name, weight;
    TargetFile: name;
}

pub use byte_size::{ByteSize, ParseSizeError};
pub use check::Purpose;
pub use env_vars::EnvVars;
pub use error::{Fault, Problem, Problems, ValueSource};
pub use layers::{KeyFlag, Overrides};
pub use path::{ConfigPath, Step};
pub use resolve::{load, parse, show};
pub use schema::schema;
pub use source::{Profile, names as builtin_names, profile as builtin};
pub use spec::{Behaviour, ProfileFile, RoleFile, ScenarioFile, TargetFile, VersusFile};
