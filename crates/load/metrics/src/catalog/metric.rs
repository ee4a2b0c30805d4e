//! Metrics: distributions of times.

use plimsoll_measure::{Nanos, Outcome, Sample, Timeline};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The requests that a distribution covers. Outcome classes are kept apart, so that many fast
/// refusals or slow failures do not move the percentiles of success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Population {
    /// Completed requests.
    Completed,
    /// Well-formed refusals.
    Rejected,
    /// Failed and timed-out requests.
    Unsuccessful,
    /// Every request that was dispatched, whatever its outcome.
    Dispatched,
}

impl Population {
    /// Whether it has requests with this outcome.
    #[inline]
    pub const fn covers(self, outcome: Outcome) -> bool {
        match self {
            Self::Completed => matches!(outcome, Outcome::Completed),
            Self::Rejected => matches!(outcome, Outcome::Rejected(_)),
            Self::Unsuccessful => matches!(outcome, Outcome::Failed(_) | Outcome::TimedOut),
            Self::Dispatched => true,
        }
    }

    /// Its name in the reference page.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Rejected => "rejected",
            Self::Unsuccessful => "failed, timed out",
            Self::Dispatched => "all dispatched",
        }
    }
}

/// Special properties of a metric.
#[derive(Clone, Copy)]
enum Trait {
    /// Its percentiles get an interval.
    Interval,
    /// It is a time between two events of an answer.
    Gap,
    /// Its measurement error is not bounded.
    Unbounded,
    /// Only streams have a value.
    Stream,
}

macro_rules! metrics {
    ($($variant:ident($name:literal, $title:literal, $population:ident $(, $trait:ident)*): $definition:literal => $of:expr;)+) => {
        /// A distribution of times over requests.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Metric {
            $(#[doc = $definition] $variant,)+
        }

        impl Metric {
            /// The number of metrics.
            pub const COUNT: usize = [$(Self::$variant),+].len();

            /// Every metric, in the order of the reports.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$variant),+];

            /// The name in thresholds and files.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The name with its unit: the key in JSON.
            pub const fn key(self) -> &'static str {
                match self { $(Self::$variant => concat!($name, "_ms"),)+ }
            }

            /// The heading in reports.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }

            /// Its definition.
            pub const fn definition(self) -> &'static str {
                match self { $(Self::$variant => $definition,)+ }
            }

            /// Its special properties.
            const fn traits(self) -> &'static [Trait] {
                match self { $(Self::$variant => &[$(Trait::$trait),*],)+ }
            }

            /// The requests that it covers.
            pub const fn population(self) -> Population {
                match self { $(Self::$variant => Population::$population,)+ }
            }

            /// Calls `visit` with every bounded metric that covers the request: its value, and its
            /// value with `other` instants.
            pub(crate) fn each_bounded(
                sample: &Sample,
                other: &Timeline,
                mut visit: impl FnMut(Self, Nanos, Nanos),
            ) {
                $(if Self::$variant.is_bounded() && Population::$population.covers(sample.outcome) {
                    let of: fn(&Timeline, &Sample) -> Option<Nanos> = $of;
                    if let (Some(value), Some(other)) = (of(&sample.timeline, sample), of(other, sample)) {
                        visit(Self::$variant, value, other);
                    }
                })+
            }

            /// Calls `visit` with every metric that covers the request and has a value in it. The
            /// macro writes it out metric by metric, so that nothing is called through a pointer.
            #[inline]
            pub(crate) fn each(sample: &Sample, mut visit: impl FnMut(Self, Nanos)) {
                $(if Population::$population.covers(sample.outcome) {
                    let of: fn(&Timeline, &Sample) -> Option<Nanos> = $of;
                    if let Some(value) = of(&sample.timeline, sample) {
                        visit(Self::$variant, value);
                    }
                })+
            }
        }
    };
}

metrics! {
    ResponseTime("response_time", "Response time", Completed, Interval):
        "`finished - intended`: the time that a user waits."
        => |line, _| line.response_time();
    ServiceTime("service_time", "Service time", Completed, Interval):
        "`finished - dispatched`: the time of the target, including connection set-up."
        => |line, _| line.service_time();
    DispatchLag("dispatch_lag", "Dispatch lag", Dispatched, Unbounded):
        "`dispatched - intended`: the generator's lateness, the wait for a slot of `max_in_flight`, and the wait for a connection."
        => |line, _| line.dispatch_lag();
    ReadLag("read_lag", "Read lag", Dispatched, Unbounded):
        "User-space read minus the kernel's receive time stamp, the worst read of a request: how late the generator read."
        => |_, s| s.read_lag;
    Ttfb("ttfb", "TTFB", Completed):
        "First byte of the response minus dispatched."
        => |line, _| line.ttfb();
    Ttft("ttft", "TTFT", Completed, Interval, Stream):
        "First content-bearing event (text, reasoning or tool-call delta) minus dispatched."
        => |line, _| line.ttft();
    ResponseTtft("response_ttft", "Response TTFT", Completed, Interval, Stream):
        "First content-bearing event minus intended."
        => |line, _| line.response_ttft();
    Ttfot("ttfot", "TTFOT", Completed, Stream):
        "First content event that is not reasoning, minus dispatched."
        => |line, _| line.ttfot();
    Itl("itl", "ITL", Completed, Interval, Gap, Stream):
        "The gaps between consecutive content events of a stream, one value per gap; events of one read share a time stamp and make one gap."
        => |_, _| None;
    Tpot("tpot", "TPOT", Completed, Interval, Gap, Stream):
        "Per request `(last_token - first_token) / tokens_after_first`, without hidden or summarised reasoning. No value if the content came in one piece, or if the usage does not separate the tokens that were sent."
        => |line, s| s.tpot_of(line);
    Ntpot("ntpot", "NTPOT", Completed):
        "Per request `service_time / output_tokens`."
        => |line, s| line.ntpot(s.output_tokens()?);
    ConnectionWait("connection_wait", "Connection wait", Dispatched):
        "The wait for a connection, before `dispatched`: until a used one was free, or until the one that the request got began to be opened; only requests that had to wait. Part of the response time, not of the service time."
        => |_, s| s.connect.wait;
    Dns("dns", "DNS", Completed, Unbounded):
        "Name resolution, where a connection was opened to a name."
        => |_, s| s.connect.dns;
    Connect("connect", "TCP connect", Completed, Unbounded):
        "The TCP handshake, where a connection was opened."
        => |_, s| s.connect.tcp;
    Tls("tls", "TLS handshake", Completed, Unbounded):
        "The TLS handshake, where a connection was opened."
        => |_, s| s.connect.tls;
    Upgrade("upgrade", "WebSocket handshake", Completed, Unbounded):
        "The handshake of a WebSocket, from the open connection to the 101, where one was opened."
        => |_, s| s.connect.upgrade;
    SendStall("send_stall", "Send stall", Dispatched, Unbounded):
        "HTTP/2: the time a request waited for the target's flow-control windows or its limit of concurrent streams; only requests that had to wait."
        => |_, s| s.flow.send_stall;
    ServerTime("server_time", "Server time, as reported", Completed):
        "Server time that the target reports in a response header; not measured by Plimsoll."
        => |_, s| s.server.time;
    Transfer("transfer", "Transfer", Completed, Gap):
        "First byte of the response to its end."
        => |line, _| line.transfer_time();
    RetriedAfter("retried_after", "Idle before retry", Dispatched):
        "Requests that were sent again: how long the connection of the first attempt had been idle."
        => |_, s| s.retried_after;
    RejectedResponseTime("rejected_response_time", "Response time, rejected", Rejected):
        "`finished - intended` of well-formed refusals."
        => |line, _| line.response_time();
    RejectedServiceTime("rejected_service_time", "Service time, rejected", Rejected):
        "`finished - dispatched` of well-formed refusals."
        => |line, _| line.service_time();
    UnsuccessfulResponseTime("unsuccessful_response_time", "Response time, unsuccessful", Unsuccessful):
        "`finished - intended` of failed and timed-out requests."
        => |line, _| line.response_time();
}

impl Metric {
    /// Whether its figures have a bound of their measurement error. The
    /// others are about the generator, or about parts of connection set-up.
    pub const fn is_bounded(self) -> bool {
        !self.has(Trait::Unbounded)
    }

    /// Whether only streams have a value.
    pub const fn is_of_streams(self) -> bool {
        self.has(Trait::Stream)
    }

    /// Whether its percentiles get an interval from batches of the run.
    pub const fn has_interval(self) -> bool {
        self.has(Trait::Interval)
    }

    /// Whether it is a time between two events of an answer: a late start of one lengthens the
    /// other. All other times begin with a start, so that the generator can only add to them.
    pub const fn is_gap(self) -> bool {
        self.has(Trait::Gap)
    }

    /// How other load on the hosts can change it. A slower generator also leaves the target fewer
    /// requests at once, which shortens what begins when a request is sent.
    pub const fn disturbance(self) -> Disturbance {
        match self {
            Self::ResponseTime | Self::RejectedResponseTime | Self::ResponseTtft => Disturbance::Up,
            _ => Disturbance::Either,
        }
    }

    const fn has(self, wanted: Trait) -> bool {
        let (traits, mut index) = (self.traits(), 0);
        while index < traits.len() {
            if traits[index] as u8 == wanted as u8 {
                return true;
            }
            index += 1;
        }
        false
    }
}

// How other load on the hosts of generator and target can change a figure.

/// How other load on the hosts of generator and target can change a figure, found by simulation of
/// limiters, queues and timeouts under open and closed loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// Not at all.
    None,
    /// It can only increase it.
    Up,
    /// It can only decrease it.
    Down,
    /// It can do either.
    Either,
}

impl Disturbance {
    /// Whether a limit from above or from below that is kept, or broken, on a disturbed host would
    /// be so on a quiet one: what can only have increased a figure cannot have made it keep an
    /// upper limit.
    #[expect(clippy::fn_params_excessive_bools, reason = "whether it is kept, and on which side")]
    pub const fn settles(self, kept: bool, is_upper: bool) -> bool {
        match self {
            Self::None => true,
            Self::Up => kept == is_upper,
            Self::Down => kept != is_upper,
            Self::Either => false,
        }
    }
}

// The units of the catalog.

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A length of time: nanoseconds inside, milliseconds in JSON and CSV, seconds in Prometheus.
    Time,
    /// A share of a whole, from 0 to 1.
    Share,
    /// Requests per second.
    RequestsPerSecond,
    /// Tokens per second.
    TokensPerSecond,
    /// Requests.
    Requests,
    /// Tokens.
    Tokens,
    /// Bytes.
    Bytes,
    /// Content events of streams.
    Events,
    /// Connections.
    Connections,
}

impl Unit {
    /// The suffix of a JSON key or CSV column of this unit.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Time => "_ms",
            Self::RequestsPerSecond | Self::TokensPerSecond => "_per_s",
            _ => "",
        }
    }

    /// Its name in the reference page and in messages.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Share => "share (0 to 1)",
            Self::RequestsPerSecond => "requests/s",
            Self::TokensPerSecond => "tokens/s",
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::Bytes => "bytes",
            Self::Events => "events",
            Self::Connections => "connections",
        }
    }

    /// A value with three significant digits and its unit, for sentences: `300 ms`, `41.6/s`.
    pub fn value_words(self, value: f64) -> String {
        match self {
            Self::Time => format!("{} ms", three_digits(value)),
            Self::Share => format!("{} %", three_digits(value * 100.0)),
            Self::RequestsPerSecond | Self::TokensPerSecond => format!("{}/s", three_digits(value)),
            _ => three_digits(value),
        }
    }
}

fn three_digits(value: f64) -> String {
    let decimals = [100.0, 10.0, 1.0].iter().filter(|limit| value.abs() < **limit).count();
    format!("{value:.decimals$}")
}
