//! The end of a calibration on a screen: the tests that did not pass, the floor, and the verdict.

use plimsoll_report::format::{count, time_us, utc};
use plimsoll_report::screen::{DEBUG_BUILD, Item, Rest, Rows, Screen, Tone};
use plimsoll_report::table::Table;

use crate::experiment::EXPERIMENTS;
use crate::finding::{ExperimentResult, Finding};
use crate::record::{Floor, Record};

/// Tests that did not pass and are left out last.
const LEAST: usize = 5;

const IDLE: &str = "run it again on an idle host; the record has every figure";

impl Record {
    /// The screen at the end of the command; `--full` also prints the line of each test.
    pub fn screen(&self) -> Screen {
        let mut screen = Screen::new(Rest::Flag);
        let build = if self.debug_build { DEBUG_BUILD } else { "" };
        let taken = utc(self.taken_unix_s.saturating_mul(1_000_000_000));
        screen.title(&format!(
            "calibrate: plimsoll {} on {}, {taken}{build}",
            self.tool_version, self.host.name
        ));
        let mut bad: Vec<_> = self.findings.iter().filter_map(not_passed).collect();
        bad.sort_by_key(|(tone, _)| std::cmp::Reverse(*tone));
        screen.judged("", "tests", bad.into_iter().map(|(_, item)| item).collect(), LEAST);
        screen.rows("", self.counts_by_result());
        let (_, failed) = self.counts();
        if failed > 0 {
            let what = "tests that failed or did not run prove nothing on this host";
            screen.stands_out([Item::new(Tone::Unsure, what).fix(IDLE)]);
        }
        if !self.separate_cores {
            let what = "generator and reference server shared a core";
            screen.stands_out([Item::new(Tone::Unsure, what).fix("allow this process two cores")]);
        }
        if let Some(Floor { response_time_p50_us, response_time_p99_us, highest_rate }) = self.floor
        {
            screen.fact(&format!(
                "floor of this host: response time p50 {}, p99 {}; one worker sends up to {:.0}/s",
                time_us(response_time_p50_us),
                time_us(response_time_p99_us),
                highest_rate
            ));
        }
        let (tone, text) = self.verdict();
        screen.verdict(tone, &text);
        screen
    }

    fn counts_by_result(&self) -> Rows {
        let mut table = Table::new(["tests", "passed", "failed", "not run"]);
        let number = |wanted: fn(&ExperimentResult) -> bool| {
            let found = self.findings.iter().filter(|finding| wanted(&finding.result)).count();
            if found == 0 { String::new() } else { count(found.try_into().unwrap_or(u64::MAX)) }
        };
        table.row([
            count(self.findings.len().try_into().unwrap_or(u64::MAX)),
            number(|result| *result == ExperimentResult::Pass),
            number(|result| *result == ExperimentResult::Fail),
            number(|result| matches!(result, ExperimentResult::NotRun(_))),
        ]);
        Rows { table, unit: "rows", most: 1, ..Rows::default() }
    }

    /// Speaks of all figures only after all tests.
    fn praise(&self) -> String {
        let (passed, _) = self.counts();
        match EXPERIMENTS.len() {
            all if passed as usize == all => {
                "PASS: the figures of Plimsoll are right on this host".to_owned()
            }
            all => format!("PASS: {passed} of {all} tests ran and passed on this host"),
        }
    }

    fn verdict(&self) -> (Tone, String) {
        let failed = self.failed_tests();
        let ran = self.findings.iter().any(|finding| finding.result == ExperimentResult::Fail);
        match (self.passed(), failed.as_slice()) {
            (true, _) => (Tone::Good, self.praise()),
            (false, []) => (Tone::Unsure, "INCONCLUSIVE: no test was run".to_owned()),
            (false, names) if ran => (Tone::Bad, format!("FAIL: {}", names.join(", "))),
            (false, names) => {
                (Tone::Unsure, format!("INCONCLUSIVE: not run: {}", names.join(", ")))
            }
        }
    }
}

/// The screen item of a test that failed or could not run.
fn not_passed(finding: &Finding) -> Option<(Tone, Item)> {
    let name = format!("{} {}", finding.experiment, finding.title);
    match &finding.result {
        ExperimentResult::Fail => {
            let worst = finding.worst().map(|check| format!(": {check}")).unwrap_or_default();
            Some((Tone::Bad, Item::judged(Tone::Bad, "FAIL", &format!("{name}{worst}"))))
        }
        ExperimentResult::NotRun(why) => {
            let text = format!("{name}: {why}");
            Some((Tone::Unsure, Item::judged(Tone::Unsure, "not run", &text)))
        }
        ExperimentResult::Pass => None,
    }
}
