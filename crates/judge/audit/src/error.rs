//! Why a file cannot be audited.

/// The largest file that is read, in bytes.
pub const LARGEST_FILE: usize = 8 << 20;

/// A file that cannot be audited. Each message says the cause and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// Larger than [`LARGEST_FILE`].
    #[error("is larger than 8 MiB: give the page or the table alone")]
    TooLarge,
    /// Not text.
    #[error("is not text: give Markdown, HTML, CSV, plain text or a summary.json of Plimsoll")]
    Binary,
    /// Text without a figure that is understood.
    #[error(
        "no figures are understood in it: neither a table nor the output of a known tool \
             (wrk, k6, oha, hey, ab, Plimsoll){0}. `--map 'HEADING=MEANING'` explains a heading"
    )]
    NoFigures(String),
    /// A claim that cannot be read.
    #[error("claim `{0}`: write NAME=VALUE pairs, like `conns=100 rps=21989 mean=4.59ms`")]
    Claim(String),
    /// An explanation of a heading that is none.
    #[error(
        "`{0}`: write HEADING=MEANING, like `Antwortzeit=mean:ms`; meanings are p50, p99.9, mean, \
         min, max, rps, requests, errors, error rate, success rate, conns, duration, transfer, size"
    )]
    Map(String),
    /// JSON that is not ours.
    #[error("is JSON, and no summary.json of Plimsoll: give the tool's text output")]
    Json,
}
