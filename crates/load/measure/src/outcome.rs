//! How a scheduled request ended, and which side caused an error.

use crate::named_enum;
use serde::{Deserialize, Serialize};

/// The side that caused an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The load generator ran out of a resource: the numbers describe it, not the target.
    Generator,
    /// The network or connection set-up.
    Network,
    /// The target responded, but incorrectly.
    Target,
}

macro_rules! error_classes {
    ($($(#[$doc:meta])* $variant:ident => ($name:literal, $words:literal, $side:ident),)+) => {
        /// Why a request failed. A closed list; each class belongs to one side.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        pub enum ErrorClass {
            $($(#[$doc])* $variant,)+
        }

        impl ErrorClass {
            /// Every class, in the order of declaration.
            pub const ALL: [Self; [$(Self::$variant),+].len()] = [$(Self::$variant),+];

            /// The name in files and reports.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The class in a sentence.
            pub const fn words(self) -> &'static str {
                match self { $(Self::$variant => $words,)+ }
            }

            /// The side that caused the error.
            pub const fn side(self) -> Side {
                match self { $(Self::$variant => Side::$side,)+ }
            }
        }
    };
}

error_classes! {
    /// No local port was free for a new connection (`EADDRNOTAVAIL`).
    PortExhaustion => ("gen_port_exhaustion", "no port", Generator),
    /// No file descriptor was free (`EMFILE`, `ENFILE`).
    FdExhaustion => ("gen_fd_exhaustion", "no descriptor", Generator),
    /// The kernel had no memory or buffers for a socket.
    NoBuffers => ("gen_no_buffers", "no buffers", Generator),
    /// Another error of the local system call.
    LocalIo => ("gen_io", "local I/O", Generator),
    /// The host name did not resolve.
    Dns => ("dns", "unknown host", Network),
    /// The connection was refused.
    ConnectRefused => ("connect_refused", "connection refused", Network),
    /// The connection was not established in time.
    ConnectTimeout => ("connect_timeout", "connection timeout", Network),
    /// Network or host unreachable.
    Unreachable => ("unreachable", "unreachable", Network),
    /// The TLS handshake failed.
    TlsHandshake => ("tls_handshake", "TLS handshake", Network),
    /// The proxy could not connect to the target.
    Proxy => ("proxy", "proxy error", Network),
    /// The target's certificate was not accepted.
    TlsCertificate => ("tls_certificate", "untrusted certificate", Network),
    /// The connection was reset or broken while in use.
    Reset => ("reset", "connection reset", Network),
    /// The connection was closed before a complete response head.
    ClosedEarly => ("closed_early", "connection closed", Network),
    /// A 5xx status.
    ServerError => ("server_error", "server error", Target),
    /// The response is not HTTP.
    MalformedHead => ("malformed_head", "not HTTP", Target),
    /// The response head is larger than the limit.
    HeadTooLarge => ("head_too_large", "head too large", Target),
    /// The chunked framing of the body is broken.
    MalformedChunk => ("malformed_chunk", "malformed chunk", Target),
    /// The body ended before its announced length.
    BodyTruncated => ("body_truncated", "body truncated", Target),
    /// The body, or one event or line of it, is larger than the limit.
    BodyTooLarge => ("body_too_large", "body too large", Target),
    /// A redirect that is not followed.
    Redirect => ("redirect", "redirect", Target),
    /// A success with a status that the profile does not expect (`http.expect`).
    UnexpectedStatus => ("unexpected_status", "unexpected status", Target),
    /// The content type is not the one of the dialect.
    ContentType => ("content_type", "content type", Target),
    /// The body does not follow the dialect (not JSON, wrong shape, not UTF-8).
    MalformedBody => ("malformed_body", "malformed body", Target),
    /// An error event inside a stream, or an error object in a 200.
    StreamError => ("stream_error", "an error in the response", Target),
    /// A JSON-RPC error in a well-formed response; its code is counted separately.
    RpcError => ("rpc_error", "RPC error", Target),
    /// The stream ended without its terminator.
    StreamTruncated => ("stream_truncated", "stream truncated", Target),
    /// The stream had its terminator but no finish reason, although the target sends one in other
    /// streams: a gateway may have terminated a stream that was truncated upstream.
    NoFinishReason => ("no_finish_reason", "no finish reason", Target),
    /// The stream had its terminator but no content, finish reason or tokens.
    EmptyAnswer => ("empty_answer", "empty answer", Target),
    /// The response to a WebSocket handshake is a success, but not a valid 101.
    WebsocketHandshake => ("websocket_handshake", "WebSocket handshake", Target),
    /// The frames of a WebSocket violate the protocol.
    WebsocketProtocol => ("websocket_protocol", "WebSocket protocol", Target),
    /// The target closed a WebSocket before the end of the conversation.
    WebsocketClosed => ("websocket_closed", "WebSocket closed", Target),
}

/// How a scheduled request ended: seven counts that sum to all scheduled requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A complete, well-formed success.
    Completed,
    /// A well-formed rejection, with its 4xx status.
    Rejected(u16),
    /// An error of the given class.
    Failed(ErrorClass),
    /// The request's own time limit expired.
    TimedOut,
    /// Cancelled by the scenario or the run before its time limit.
    Cancelled,
    /// Unfinished when the run's drain time was over.
    InFlight,
    /// Scheduled, but never sent: dropped by the overflow policy, or still queued at the end.
    #[default]
    NeverSent,
}

impl Outcome {
    /// The names in files and reports, in the order of the accounting line.
    pub const NAMES: [&'static str; 7] =
        ["completed", "rejected", "failed", "timed_out", "cancelled", "in_flight", "never_sent"];

    /// Position in [`Outcome::NAMES`].
    pub const fn index(self) -> usize {
        match self {
            Self::Completed => 0,
            Self::Rejected(_) => 1,
            Self::Failed(_) => 2,
            Self::TimedOut => 3,
            Self::Cancelled => 4,
            Self::InFlight => 5,
            Self::NeverSent => 6,
        }
    }

    /// The name in files and reports.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self.index()]
    }
}

named_enum! {
    /// The target's decision about a turn, derived from its response.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum PolicyDecision {
        /// Allowed.
        Allow => "allow",
        /// Rejected by a rule.
        Block => "block",
        /// Allowed with parts removed.
        Redact => "redact",
        /// Rejected for its rate.
        RateLimited => "rate_limited",
        /// Any other response.
        Unexpected => "unexpected",
    }
}

impl PolicyDecision {
    /// Number of policy decisions.
    pub const COUNT: usize = 5;

    /// The policy decision of an HTTP status: 2xx allow, 403 block, 429 rate-limited. An opened
    /// WebSocket (101) is allowed.
    pub const fn from_status(status: u16) -> Self {
        match status {
            101 | 200..=299 => Self::Allow,
            403 => Self::Block,
            429 => Self::RateLimited,
            _ => Self::Unexpected,
        }
    }
}
