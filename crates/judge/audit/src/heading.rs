//! What a heading says about the figures below or beside it.

use crate::unit::{self, Dimension, Unit};

/// A statistic of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stat {
    Min,
    Mean,
    /// In thousandths of a per cent: 99,900 is the 99.9th.
    Percentile(u32),
    Max,
}

/// What a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Quantity {
    Time(Stat),
    Rate,
    /// Wanted, not measured.
    OfferedRate,
    DataRate,
    Requests,
    Successes,
    Errors,
    SuccessShare,
    ErrorShare,
    Clients,
    Threads,
    Duration,
    Size,
}

/// A heading that is understood.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Meaning {
    pub(crate) quantity: Quantity,
    /// What is measured, if not simply requests: `ttft`.
    pub(crate) of: String,
    pub(crate) unit: Option<Unit>,
    /// The heading has one reading only.
    pub(crate) sure: bool,
}

const RATES: [&str; 17] = [
    "rps",
    "qps",
    "tps",
    "req/s",
    "reqs/s",
    "req/sec",
    "reqs/sec",
    "requests/s",
    "requests/sec",
    "requests/second",
    "throughput",
    "r/s",
    "ops/s",
    "ops/sec",
    "req/min",
    "requests/min",
    "rpm",
];
const ERRORS: [&str; 9] =
    ["error", "errors", "failed", "failures", "failure", "fails", "fail", "err", "non-2xx"];
const SUCCESSES: [&str; 7] =
    ["success", "successes", "successful", "succeeded", "ok", "2xx", "availability"];
const CLIENTS: [&str; 10] = [
    "connections",
    "conns",
    "conn",
    "clients",
    "concurrency",
    "concurrent",
    "vus",
    "users",
    "workers",
    "connection",
];
const SHARES: [&str; 7] = ["rate", "%", "share", "ratio", "percent", "percentage", "pct"];
/// Words that say nothing about what was measured.
const PLAIN: [&str; 28] = [
    "latency",
    "latencies",
    "response",
    "time",
    "times",
    "duration",
    "request",
    "requests",
    "req",
    "http",
    "in",
    "the",
    "of",
    "lat",
    "percentile",
    "value",
    "total",
    "count",
    "number",
    "per",
    "client",
    "reqs",
    "http_req",
    "ile",
    "test",
    "all",
    "sample",
    "samples",
];
/// Words beside a statistic that make it something else than a time.
const OTHERS: [&str; 14] = [
    "cpu", "memory", "mem", "ram", "rss", "tokens", "token", "size", "bytes", "score", "load",
    "queue", "heap", "stdev",
];

/// The meaning of a heading, if it is known.
pub(crate) fn meaning(heading: &str) -> Option<Meaning> {
    let words = words_of(heading)?;
    let unit = words.iter().find_map(|word| unit_word(word));
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let share = has(&SHARES) || unit.is_some_and(|unit| unit.dimension == Dimension::Share);
    let known = |quantity, sure| {
        let of = subject(&words);
        Some(Meaning { quantity, of, unit, sure })
    };
    let is_rate = has(&RATES) || per_second(&words);
    if has(&["target", "offered", "planned", "goal", "limit"]) {
        return if is_rate { known(Quantity::OfferedRate, true) } else { None };
    }
    if has(&["tokens", "token", "messages", "rows", "stdev", "stddev", "sd", "deviation"]) {
        return None;
    }
    if let Some(stat) = words.iter().find_map(|word| statistic(word, words.len())) {
        if is_rate {
            return if stat == Stat::Mean { known(Quantity::Rate, false) } else { None };
        }
        return if has(&OTHERS) || has(&ERRORS) || has(&CLIENTS) || share_of_time(unit) {
            None
        } else {
            known(Quantity::Time(stat), true)
        };
    }
    if has(&ERRORS) {
        return known(if share { Quantity::ErrorShare } else { Quantity::Errors }, true);
    }
    if has(&SUCCESSES) {
        return known(if share { Quantity::SuccessShare } else { Quantity::Successes }, true);
    }
    if unit.is_some_and(|unit| unit.dimension == Dimension::DataRate)
        || has(&["transfer", "bandwidth", "transfer/sec"])
    {
        return known(Quantity::DataRate, true);
    }
    if is_rate {
        return known(Quantity::Rate, !has(&["tps", "throughput"]) || unit.is_some());
    }
    plain_meaning(&words, &has).and_then(|(quantity, sure)| known(quantity, sure))
}

/// Counts, sizes and durations.
fn plain_meaning(words: &[String], has: &impl Fn(&[&str]) -> bool) -> Option<(Quantity, bool)> {
    let (alone, per) = (words.len() == 1, has(&["per"]));
    if has(&["size", "size/request", "payload", "body", "bytes/request"]) {
        return Some((Quantity::Size, has(&["size/request", "bytes/request"])));
    }
    if has(&CLIENTS) {
        return (!per).then_some((Quantity::Clients, true));
    }
    if has(&["threads"]) {
        return Some((Quantity::Threads, true));
    }
    if has(&["samples", "requests", "reqs", "count"]) && !has(&["flight", "in-flight", "s"]) {
        return Some((Quantity::Requests, !has(&["count"])));
    }
    if has(&["elapsed", "runtime", "taken"]) || (alone && has(&["duration"])) {
        return Some((Quantity::Duration, true));
    }
    let test_time = has(&["duration", "time"]) && has(&["test", "run", "total"]);
    test_time.then_some((Quantity::Duration, false))
}

fn share_of_time(unit: Option<Unit>) -> bool {
    unit.is_some_and(|unit| unit.dimension != Dimension::Time)
}

/// Small words: `P(99) [ms]` is `p99`, `ms`. `None` where there is nothing, or a whole sentence.
fn words_of(heading: &str) -> Option<Vec<String>> {
    if heading.len() > 120 {
        return None;
    }
    let text = heading.to_lowercase().replace("p(", "p").replace("99_9", "99.9");
    let words: Vec<String> = text
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '%' | '/' | '\u{d7}' | '-')))
        .map(|word| word.trim_matches(['.', '-']).to_owned())
        .filter(|word| !word.is_empty())
        .collect();
    (1..=8).contains(&words.len()).then_some(words)
}

fn unit_word(word: &str) -> Option<Unit> {
    // `min` and `m` are a minimum and a million as often as they are minutes.
    if matches!(word, "min" | "m" | "b" | "x" | "h" | "max") { None } else { unit::named(word) }
}

fn per_second(words: &[String]) -> bool {
    words.windows(3).any(|three| {
        matches!(three[0].as_str(), "requests" | "req" | "reqs")
            && three[1] == "per"
            && matches!(three[2].as_str(), "second" | "sec" | "s")
    })
}

/// A statistic's word: `p99`, `99th`, `avg`.
fn statistic(word: &str, words: usize) -> Option<Stat> {
    match word {
        "avg" | "average" | "mean" => return Some(Stat::Mean),
        "med" | "median" => return Some(Stat::Percentile(50_000)),
        "max" | "maximum" | "worst" | "slowest" => return Some(Stat::Max),
        "min" | "minimum" | "fastest" => return Some(Stat::Min),
        "p999" => return Some(Stat::Percentile(99_900)),
        "p9999" => return Some(Stat::Percentile(99_990)),
        _ => {}
    }
    let (digits, certain) = match word.strip_prefix('p') {
        Some(digits) => (digits, true),
        None => match word.strip_suffix("th").or_else(|| word.strip_suffix("ile")) {
            Some(digits) => (digits.trim_end_matches('%'), true),
            None => (word.strip_suffix('%')?, false),
        },
    };
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let percent: f64 = digits.parse().ok().filter(|_| plain)?;
    if !(certain || words <= 2) || !(percent > 0.0 && percent <= 100.0) {
        return None;
    }
    if percent >= 100.0 {
        return Some(Stat::Max);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 99,999")]
    let thousandths = (percent * 1000.0).round() as u32;
    Some(Stat::Percentile(thousandths))
}

/// What is left of a heading without statistic, unit and words that say nothing.
fn subject(words: &[String]) -> String {
    let unknown = words.iter().map(String::as_str).filter(|word| !is_known(word, words.len()));
    unknown.collect::<Vec<_>>().join(" ")
}

/// Whether the word says what is measured, in a heading of so many words.
fn is_known(word: &str, words: usize) -> bool {
    PLAIN.contains(&word)
        || RATES.contains(&word)
        || ERRORS.contains(&word)
        || SUCCESSES.contains(&word)
        || CLIENTS.contains(&word)
        || SHARES.contains(&word)
        || unit_word(word).is_some()
        || statistic(word, words).is_some()
}

/// The column that compares two others.
pub(crate) fn is_change(heading: &str) -> bool {
    const WORDS: [&str; 15] = [
        "change",
        "improvement",
        "drop",
        "diff",
        "difference",
        "delta",
        "\u{3b4}",
        "speedup",
        "gain",
        "reduction",
        "faster",
        "slower",
        "increase",
        "decrease",
        "overhead",
    ];
    let words = heading.to_lowercase();
    let mut words = words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.clone().count() <= 4 && words.any(|word| WORDS.contains(&word))
}

impl Quantity {
    /// The dimension that its unit must have.
    pub(crate) const fn dimension(self) -> Option<Dimension> {
        match self {
            Self::Time(_) | Self::Duration => Some(Dimension::Time),
            Self::Rate | Self::OfferedRate => Some(Dimension::Rate),
            Self::DataRate => Some(Dimension::DataRate),
            Self::SuccessShare | Self::ErrorShare => Some(Dimension::Share),
            Self::Size => Some(Dimension::Size),
            Self::Requests | Self::Successes | Self::Errors | Self::Clients | Self::Threads => None,
        }
    }

    /// Its name in the report.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Time(stat) => stat.name(),
            Self::Rate => "requests/s".to_owned(),
            Self::OfferedRate => "offered requests/s".to_owned(),
            Self::DataRate => "bytes/s".to_owned(),
            Self::Requests => "requests".to_owned(),
            Self::Successes => "successes".to_owned(),
            Self::Errors => "errors".to_owned(),
            Self::SuccessShare => "success rate".to_owned(),
            Self::ErrorShare => "error rate".to_owned(),
            Self::Clients => "clients".to_owned(),
            Self::Threads => "threads".to_owned(),
            Self::Duration => "duration".to_owned(),
            Self::Size => "size".to_owned(),
        }
    }
}

impl Stat {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Min => "min".to_owned(),
            Self::Mean => "mean".to_owned(),
            Self::Max => "max".to_owned(),
            Self::Percentile(thousandths) => format!("p{}", f64::from(thousandths) / 1000.0),
        }
    }

    /// The share of samples at or below it, for order statistics.
    pub(crate) fn share(self) -> Option<f64> {
        match self {
            Self::Min => Some(0.0),
            Self::Percentile(thousandths) => Some(f64::from(thousandths) / 100_000.0),
            Self::Max => Some(1.0),
            Self::Mean => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_of_many_tools_are_understood() {
        let percentile = |percent: u32| Quantity::Time(Stat::Percentile(percent * 1000));
        for (heading, quantity, of) in [
            ("P99 (ms)", percentile(99), ""),
            ("p(95)", percentile(95), ""),
            ("99th percentile", percentile(99), ""),
            ("99%", percentile(99), ""),
            ("Median latency", percentile(50), ""),
            ("ttft_p50", percentile(50), "ttft"),
            ("p99_9", Quantity::Time(Stat::Percentile(99_900)), ""),
            ("Avg Latency", Quantity::Time(Stat::Mean), ""),
            ("Cache-hit avg latency", Quantity::Time(Stat::Mean), "cache-hit"),
            ("Slowest", Quantity::Time(Stat::Max), ""),
            ("RPS", Quantity::Rate, ""),
            ("Requests per second", Quantity::Rate, ""),
            ("Target RPS", Quantity::OfferedRate, "target"),
            ("Total Requests", Quantity::Requests, ""),
            ("Error rate", Quantity::ErrorShare, ""),
            ("Errors", Quantity::Errors, ""),
            ("HTTP success", Quantity::Successes, ""),
            ("Connections", Quantity::Clients, ""),
            ("Duration", Quantity::Duration, ""),
            ("Transfer/sec", Quantity::DataRate, "transfer/sec"),
        ] {
            let meaning = meaning(heading).unwrap_or_else(|| panic!("{heading}"));
            assert_eq!((meaning.quantity, meaning.of.as_str()), (quantity, of), "{heading}");
        }
        for heading in
            ["Notes", "Topology", "CPU p99", "tokens/s", "Stdev", "", "Max users", "Size x"]
        {
            let known = meaning(heading).map(|meaning| meaning.quantity);
            assert!(matches!(known, None | Some(Quantity::Size)), "{heading}: {known:?}");
        }
    }

    #[test]
    fn changes_are_recognised() {
        assert!(is_change("Drop") && is_change("% change") && is_change("\u{394} p99"));
        assert!(!is_change("Result") && !is_change("Change of plans in the year of 2025"));
    }
}
