//! Requests without a good answer: how many, why, and what to do.

use plimsoll_measure::{ErrorClass, Side};
use plimsoll_metrics::{Group, RunEnd, RunSummary, TargetInfo};

use crate::format::{count, share};
use crate::screen::{Item, Tone};

/// Kinds of errors that are named.
const NAMED: usize = 3;

/// One sentence for each way in which requests ended badly, the most frequent first.
pub fn items(summary: &RunSummary) -> Vec<Item> {
    let total = &summary.results.total;
    let counters = &total.counters;
    let mut found = vec![
        (counters.refused(), refused(summary, total)),
        (counters.failed, failed(summary, total)),
    ];
    let (unanswered, look) = match summary.metadata.run.ended {
        RunEnd::Interrupted => ("were in flight when it was interrupted", ""),
        _ => ("had no response at the end", "look why the target hangs, or raise `drain`"),
    };
    let others = [
        (counters.timed_out, "timed out", "look why the target hangs, or raise `timeout`"),
        (counters.in_flight, unanswered, look),
        (counters.never_sent, "were never sent", "raise `max_in_flight`, or lower the rate"),
        (counters.cancelled, "were cancelled", "see the accounting in report.txt"),
    ];
    found.extend(others.map(|(number, what, fix)| {
        (number, Item::new(Tone::Unsure, &sentence(total, number, what)).fix(fix))
    }));
    found.retain(|(number, _)| *number > 0);
    found.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    found.into_iter().map(|(_, item)| item).collect()
}

/// `20 of 2,030 requests (0.99%) WHAT`.
fn sentence(total: &Group, number: u64, what: &str) -> String {
    let of = total.counters.scheduled;
    let part = share(number as f64 / of.max(1) as f64);
    format!("{} of {} requests ({part}) {what}", count(number), count(of))
}

fn refused(summary: &RunSummary, total: &Group) -> Item {
    let number = total.counters.refused();
    // Statuses are not counted apart for refusals that were expected.
    let all_count = number == total.counters.rejected;
    let statuses = total.statuses.iter().filter(|(s, _)| all_count && (400..500).contains(*s));
    let mut kinds: Vec<_> = statuses.map(|(status, number)| (*number, *status)).collect();
    kinds.sort_unstable_by(|a, b| b.cmp(a));
    let named = kinds.iter().take(NAMED).map(|(n, s)| format!("{s} x {}", count(*n)));
    let named = named.collect::<Vec<_>>().join(", ");
    let what = format!("were refused{}{named}", if all_count { ": " } else { "" });
    let first = kinds.first().map(|(_, status)| *status);
    let message = first.and_then(|status| message(summary, &format!("status {status}")));
    let text = sentence(total, number, &what) + &message.unwrap_or_default();
    Item::new(Tone::Unsure, &text).fix(fix_of_status(first, has_models(summary)))
}

fn failed(summary: &RunSummary, total: &Group) -> Item {
    let classes = ErrorClass::ALL.into_iter();
    let mut kinds: Vec<_> =
        classes.filter_map(|class| Some((*total.errors.get(class.name())?, class))).collect();
    kinds.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    let named =
        kinds.iter().take(NAMED).map(|(n, class)| format!("{} x {}", class.name(), count(*n)));
    let what = format!("failed: {}", named.collect::<Vec<_>>().join(", "));
    let first = kinds.first().map(|(_, class)| *class);
    let message = first.and_then(|class| message(summary, class.name()));
    let text = sentence(total, total.counters.failed, &what) + &message.unwrap_or_default();
    Item::new(Tone::Unsure, &text).fix(first.map_or("", fix_of_class))
}

/// The target's first message of a kind, as the notes of the run have it: `; "no such key"`.
fn message(summary: &RunSummary, kind: &str) -> Option<String> {
    let note = summary.metadata.notes.iter().find(|note: &&String| {
        note.split_once(FIRST).is_some_and(|(kinds, _)| kinds.ends_with(&format!(" x {kind}")))
    })?;
    note.split_once(FIRST).map(|(_, message)| format!("; {message}"))
}

/// The notes on why requests failed.
pub(super) fn messages(summary: &RunSummary) -> impl Iterator<Item = Item> {
    let notes = summary.metadata.notes.iter().filter(|note| note.contains(FIRST));
    notes.map(|note| Item::new(Tone::Unsure, note))
}

/// Before the message in such a note.
const FIRST: &str = "; the first message: ";

/// Whether the targets are asked for models: plain requests have none.
fn has_models(summary: &RunSummary) -> bool {
    summary.metadata.targets.iter().any(|target: &TargetInfo| !target.model.is_empty())
}

const fn fix_of_status(status: Option<u16>, has_models: bool) -> &'static str {
    match status {
        Some(401 | 403) if !has_models => "send credentials with -H, or expect the status",
        Some(404) if !has_models => "check the path, or expect it: --expect 404 (`http.expect`)",
        Some(401 | 403) => "give the right key with --key or PLIMSOLL_KEY",
        Some(404) => "check the path in the URL, --protocol and --model",
        Some(429) => "lower the rate, or raise the limit of the target",
        _ => "check what is sent: the target does not accept it",
    }
}

/// As the guide on troubleshooting has it.
const fn fix_of_class(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::ConnectRefused => "start the target, or correct its URL",
        ErrorClass::Dns | ErrorClass::ConnectTimeout | ErrorClass::Unreachable => {
            "check the host name and the network route to it"
        }
        ErrorClass::TlsCertificate => "give the target's root with --ca-file, or --insecure",
        // Its message says how to follow it, or that it may be a circle.
        ErrorClass::Redirect => "",
        ErrorClass::UnexpectedStatus => "expect the status as well (`http.expect`)",
        ErrorClass::TlsHandshake | ErrorClass::MalformedHead => {
            "check the port: TLS for `https`, HTTP/1.1 for `http`"
        }
        ErrorClass::StreamTruncated | ErrorClass::NoFinishReason | ErrorClass::EmptyAnswer => {
            "look for a timeout or a limit in the target, or a proxy before it"
        }
        ErrorClass::ContentType | ErrorClass::MalformedBody => {
            "check --protocol and the path: another dialect, or a login page"
        }
        _ => match class.side() {
            Side::Generator => "`plimsoll doctor` shows what this host lacks",
            Side::Network | Side::Target => "look into the log of the target at that time",
        },
    }
}
