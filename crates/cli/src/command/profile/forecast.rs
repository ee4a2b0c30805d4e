//! What a run of a profile needs: requests, tokens, time, connections and files; and what its
//! report will not be able to say.

use plimsoll_metrics::{QUANTILES, samples_needed};
use plimsoll_plan::{HttpVersion, Plan};
use plimsoll_report::format::{bytes, count};

use crate::planned_load::{measured_requests, most_users, requests, seconds};

/// A row of `results.jsonl` of a stream, and the files of any run.
const BYTES_OF_ROW: f64 = 900.0;
const BYTES_OF_RUN: f64 = 2e6;

/// A line for each fact.
pub(super) fn forecast(plan: &Plan) -> Vec<String> {
    [
        ("requests", Some(requests(plan))),
        ("tokens", tokens(plan)),
        ("time", Some(time(plan))),
        ("connections", Some(connections(plan))),
        ("files", Some(files(plan))),
        ("not judged", not_judged(plan)),
    ]
    .into_iter()
    .filter_map(|(title, text)| Some(format!("  {title:<12} {}", text?)))
    .collect()
}

/// Nothing where no model answers.
fn tokens(plan: &Plan) -> Option<String> {
    let models = || plan.scenarios.iter().filter(|scenario| scenario.protocol.has_model());
    models().next()?;
    let most = models().map(|scenario| scenario.max_tokens).max().flatten();
    let is_bounded = models().all(|scenario| scenario.max_tokens.is_some());
    Some(match (most.filter(|_| is_bounded), measured_requests(plan)) {
        (None, _) => "answers as long as the model makes them (no `max_tokens`)".to_owned(),
        (Some(most), None) => format!("answers of at most {most} tokens"),
        (Some(most), Some(requests)) => {
            let all = number(requests * f64::from(most));
            format!("answers of at most {most} tokens: at most {all} without the warm-up")
        }
    })
}

fn time(plan: &Plan) -> String {
    let (all, warmup) = seconds(plan);
    let warmup =
        if warmup > 0.0 { format!(", of which {warmup:.0} s warm up") } else { String::new() };
    if plan.trace.is_some() {
        return "as long as the trace".to_owned();
    }
    format!("{all:.0} s of load{warmup}; then up to {} for the last answers", plan.limits.drain)
}

fn connections(plan: &Plan) -> String {
    let targets = match plan.targets.len() {
        1 => "the target".to_owned(),
        several => format!("each of {several} targets"),
    };
    let most = plan.http.max_connections.map(|most| format!(", at most {most}"));
    let most = most.unwrap_or_default();
    match (most_users(plan), plan.http.version) {
        (_, HttpVersion::Http2) => format!("few to {targets}, with many streams each{most}"),
        (Some(users), HttpVersion::Http1) => {
            format!("one for each user to {targets}: up to {users}{most}")
        }
        (None, HttpVersion::Http1) => {
            format!("to {targets} as many as answers overlap: the rate times their length{most}")
        }
    }
}

fn files(plan: &Plan) -> String {
    let fixed = bytes(BYTES_OF_RUN);
    let rows = measured_requests(plan).map(|requests| bytes(requests * BYTES_OF_ROW));
    rows.map_or_else(
        || format!("about {fixed}, and {} for each request", bytes(BYTES_OF_ROW)),
        |rows| format!("about {fixed}, and {rows} of rows"),
    )
}

/// Percentiles of which the requests are too few, and times that no answer will have.
fn not_judged(plan: &Plan) -> Option<String> {
    let requests = measured_requests(plan);
    let rare = requests.map_or_else(Vec::new, |requests| {
        let few = QUANTILES.iter().filter(|own| (samples_needed(own.q) as f64) > requests);
        few.map(|own| format!("{} (needs {} requests)", own.label, count(samples_needed(own.q))))
            .collect()
    });
    let mut talks = plan.scenarios.iter().filter(|own| own.protocol.has_model()).peekable();
    let is_whole = talks.peek().is_some() && talks.all(|own| !own.stream);
    let no_stream = is_whole.then(|| "TTFT, ITL and TPOT (no streams)".to_owned());
    let all: Vec<_> = rare.into_iter().chain(no_stream).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative")]
fn number(value: f64) -> String {
    count(value.round() as u64)
}

#[cfg(test)]
mod tests {
    use plimsoll_plan::PlanBuilder;
    use plimsoll_workload::{Content, ScenarioSpec};

    use super::*;

    fn lines(stages: &str, stream: bool) -> String {
        let content = Content::Pool { prompts: vec!["hi".to_owned()] };
        let chat = ScenarioSpec {
            turns: 3,
            max_tokens: Some(200),
            stream,
            ..ScenarioSpec::new("chat", content)
        };
        let plan = PlanBuilder::new("http://192.0.2.1:80", stages).model("m").scenario(chat);
        forecast(&plan.build().unwrap()).join("\n")
    }

    #[test]
    fn an_open_load_is_known_before() {
        // 10 a second for 5 s of warm-up, 10 a second for 20 s: 200 conversations of 3 turns.
        let said = lines("w@10:5s,@10:20s", true);
        for part in [
            "about 750 requests",
            "answers of at most 200 tokens: at most 120,000 without the warm-up",
            "25 s of load, of which 5 s warm up",
            "as many as answers overlap",
            "540 kB of rows",
            "not judged   p99 (needs 1,000 requests), p99.9 (needs 10,000 requests)",
        ] {
            assert!(said.contains(part), "{part}:\n{said}");
        }
    }

    #[test]
    fn of_users_their_number_is_known_and_whole_answers_have_no_ttft() {
        let said = lines("10..40:60s", false);
        for part in ["up to 40 users at once", "one for each user to the target: up to 40"] {
            assert!(said.contains(part), "{part}:\n{said}");
        }
        assert!(said.contains("not judged   TTFT, ITL and TPOT (no streams)"), "{said}");
    }
}
