//! Metrics: distributions of times.

use plimsoll_measure::{Nanos, Outcome, Sample, Timeline, named_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

named_enum! {
    /// The requests that a distribution covers. Outcome classes are kept apart, so that many fast
    /// refusals or slow failures do not move the percentiles of success.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Population {
        /// Completed requests.
        Completed => "completed",
        /// Well-formed refusals.
        Rejected => "rejected",
        /// Failed and timed-out requests.
        Unsuccessful => "failed, timed out",
        /// Every request that was dispatched, whatever its outcome.
        Dispatched => "all dispatched",
    }
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
    ($($(#[doc = $definition:literal])+ $variant:ident(
        $name:literal, $title:literal, $population:ident $(, $trait:ident)*
    ) => $of:expr;)+) => {
        /// A distribution of times over requests.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Metric {
            $($(#[doc = $definition])+ $variant,)+
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
                match self { $(Self::$variant => concat!($($definition),+).trim_ascii_start(),)+ }
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
    /// `finished - intended`: the time that a user waits.
    ResponseTime("response_time", "Response time", Completed, Interval)
        => |line, _| line.response_time();
    /// `finished - dispatched`: the time of the target, including connection set-up.
    ServiceTime("service_time", "Service time", Completed, Interval)
        => |line, _| line.service_time();
    /// `dispatched - intended`: the generator's lateness, the wait for a slot of `max_in_flight`,
    /// and the wait for a connection.
    DispatchLag("dispatch_lag", "Dispatch lag", Dispatched, Unbounded)
        => |line, _| line.dispatch_lag();
    /// User-space read minus the kernel's receive time stamp, the worst read of a request: how late
    /// the generator read.
    ReadLag("read_lag", "Read lag", Dispatched, Unbounded) => |_, s| s.read_lag;
    /// First byte of the response minus dispatched.
    Ttfb("ttfb", "TTFB", Completed) => |line, _| line.ttfb();
    /// First content-bearing event (text, reasoning or tool-call delta) minus dispatched.
    Ttft("ttft", "TTFT", Completed, Interval, Stream) => |line, _| line.ttft();
    /// First content-bearing event minus intended.
    ResponseTtft("response_ttft", "Response TTFT", Completed, Interval, Stream)
        => |line, _| line.response_ttft();
    /// First content event that is not reasoning, minus dispatched.
    Ttfot("ttfot", "TTFOT", Completed, Stream) => |line, _| line.ttfot();
    /// The gaps between consecutive content events of a stream, one value per gap; events of one
    /// read share a time stamp and make one gap.
    Itl("itl", "ITL", Completed, Interval, Gap, Stream) => |_, _| None;
    /// Per request `(last_token - first_token) / tokens_after_first`, without hidden or summarised
    /// reasoning. No value if the content came in one piece, or if the usage does not separate the
    /// tokens that were sent.
    Tpot("tpot", "TPOT", Completed, Interval, Gap, Stream) => |line, s| s.tpot_of(line);
    /// Per request `service_time / output_tokens`.
    Ntpot("ntpot", "NTPOT", Completed) => |line, s| line.ntpot(s.output_tokens()?);
    /// The wait for a connection, before `dispatched`: until a used one was free, or until the one
    /// that the request got began to be opened; only requests that had to wait. Part of the
    /// response time, not of the service time.
    ConnectionWait("connection_wait", "Connection wait", Dispatched) => |_, s| s.connect.wait;
    /// Name resolution, where a connection was opened to a name.
    Dns("dns", "DNS", Completed, Unbounded) => |_, s| s.connect.dns;
    /// The TCP handshake, where a connection was opened.
    Connect("connect", "TCP connect", Completed, Unbounded) => |_, s| s.connect.tcp;
    /// The TLS handshake, where a connection was opened.
    Tls("tls", "TLS handshake", Completed, Unbounded) => |_, s| s.connect.tls;
    /// The handshake of a WebSocket, from the open connection to the 101, where one was opened.
    Upgrade("upgrade", "WebSocket handshake", Completed, Unbounded) => |_, s| s.connect.upgrade;
    /// HTTP/2: the time a request waited for the target's flow-control windows or its limit of
    /// concurrent streams; only requests that had to wait.
    SendStall("send_stall", "Send stall", Dispatched, Unbounded) => |_, s| s.flow.send_stall;
    /// Server time that the target reports in a response header; not measured by Plimsoll.
    ServerTime("server_time", "Server time, as reported", Completed) => |_, s| s.server.time;
    /// First byte of the response to its end.
    Transfer("transfer", "Transfer", Completed, Gap) => |line, _| line.transfer_time();
    /// Requests that were sent again: how long the connection of the first attempt had been idle.
    RetriedAfter("retried_after", "Idle before retry", Dispatched) => |_, s| s.retried_after;
    /// `finished - intended` of well-formed refusals.
    RejectedResponseTime("rejected_response_time", "Response time, rejected", Rejected)
        => |line, _| line.response_time();
    /// `finished - dispatched` of well-formed refusals.
    RejectedServiceTime("rejected_service_time", "Service time, rejected", Rejected)
        => |line, _| line.service_time();
    /// `finished - intended` of failed and timed-out requests.
    UnsuccessfulResponseTime("unsuccessful_response_time", "Response time, unsuccessful", Unsuccessful)
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

named_enum! {
    /// The unit of a figure.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Unit {
        /// A length of time: nanoseconds inside, milliseconds in JSON and CSV, seconds in
        /// Prometheus.
        Time => "time",
        /// A share of a whole, from 0 to 1.
        Share => "share (0 to 1)",
        /// Requests per second.
        RequestsPerSecond => "requests/s",
        /// Tokens per second.
        TokensPerSecond => "tokens/s",
        /// Requests.
        Requests => "requests",
        /// Tokens.
        Tokens => "tokens",
        /// Bytes.
        Bytes => "bytes",
        /// Content events of streams.
        Events => "events",
        /// Connections.
        Connections => "connections",
    }
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
