//! The gateway's share of an LLM call: the same chat through it and at the upstream.

use plimsoll_report::format::{percent, time};
use plimsoll_report::table::Table;

use crate::comparison_result::Interval;
use crate::measurement::Measurement;
use crate::report::Section;
use crate::runner::{NO_DIRECT, SuiteRunner};
use crate::suite::layers::NO_CHAT;
use crate::suite::{TIMES_SHORT, comparison_length};
use crate::target::{DIRECT, SuiteTarget};

/// Chats per second on each way.
const PAIRS_PER_S: f64 = 40.0;
const GATEWAY: &str = "gateway";
/// Times of providers for which the share is computed, in milliseconds.
const PROVIDERS_MS: [f64; 3] = [100.0, 500.0, 2_000.0];

/// The title of its table.
const TITLE: &str = "The gateway's share of an LLM call";

/// Compares the two ways, or states the requirement if there is nothing to compare with.
pub(super) fn measure(
    runner: &mut SuiteRunner<'_>,
    behind: Option<&SuiteTarget>,
    gateway: &SuiteTarget,
) {
    runner.section = TITLE;
    let Some(behind) = behind else {
        let has_direct = runner.direct().is_some();
        return runner.skip_section(if has_direct { NO_CHAT } else { NO_DIRECT });
    };
    if runner.is_interrupted() {
        return;
    }
    let targets = vec![(DIRECT.to_owned(), behind.clone()), (GATEWAY.to_owned(), gateway.clone())];
    let request = Measurement::chat(TITLE, behind, false, (128, 64))
        .rate(PAIRS_PER_S, comparison_length(runner.options, 30, TIMES_SHORT));
    let compared = runner.compare(request, &targets, false);
    if let (Ok(added), Some(provider)) = (compared.added(GATEWAY), compared.p50_ms(DIRECT)) {
        runner.report.sections.push(section(added, provider));
    }
}

/// The gateway's overhead as a share of the call through it, for a given response time of the
/// provider: the value and the ends of its interval.
fn shares(added_ms: Interval, provider_ms: f64) -> Interval {
    added_ms.map(|added| added.max(0.0) / (provider_ms + added.max(0.0)))
}

fn section(added: Interval, provider: f64) -> Section {
    let mut table = Table::new(["Provider takes", "gateway adds", "share of the call"]);
    let computed = PROVIDERS_MS.into_iter().map(|provider| (provider, "computed"));
    for (provider, how) in std::iter::once((provider, "measured")).chain(computed) {
        let [value, low, high] = shares(added, provider).map(percent);
        table.row([
            format!("{} ({how})", time(provider)),
            time(added[0]),
            format!("{value} [{low}, {high}]"),
        ]);
    }
    Section::new(TITLE, table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_of_the_whole_call_and_never_negative() {
        let shares = shares([1.0, -0.5, 3.0], 9.0).map(percent);
        assert_eq!(shares, ["10.0%", "0%", "25.0%"]);
    }
}
