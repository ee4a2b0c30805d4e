//! Requests without a good answer, sorted into rules by error class and status.

use plimsoll_measure::{ErrorClass, Side};
use plimsoll_rules::Finding;

use super::target::{CHECK_LOG, Seen};
use crate::catalog::Counters;
use crate::run_metadata::RunEnd;
use crate::time_facts::TIMED_OUT;

/// Kinds that are named.
const NAMED: usize = 3;

/// The rule of an error class; `None` for errors of the generator, which PL103 has.
const fn rule_of(class: ErrorClass) -> Option<u16> {
    match class {
        ErrorClass::Dns
        | ErrorClass::ConnectRefused
        | ErrorClass::ConnectTimeout
        | ErrorClass::Unreachable
        | ErrorClass::Proxy => Some(202),
        ErrorClass::TlsHandshake | ErrorClass::TlsCertificate => Some(203),
        ErrorClass::ServerError | ErrorClass::StreamError | ErrorClass::RpcError => Some(204),
        ErrorClass::Redirect | ErrorClass::UnexpectedStatus => Some(206),
        // PL304 has them.
        ErrorClass::StreamTruncated | ErrorClass::NoFinishReason => None,
        _ => match class.side() {
            Side::Generator => None,
            Side::Network | Side::Target => Some(205),
        },
    }
}

/// Each way in which requests of a target ended badly.
pub(super) fn findings(seen: &Seen<'_>) -> Vec<Finding> {
    let classes = [202, 203, 205].into_iter().filter_map(|code| of_classes(seen, code));
    let mut found: Vec<_> = classes.collect();
    found.extend(server_errors(seen));
    found.extend(unexpected_status(seen));
    found.extend(rate_limited(seen));
    found.extend(no_response(seen));
    found
}

/// The classes of a rule with their counts, the most frequent first.
fn classes(seen: &Seen<'_>, code: u16) -> Vec<(u64, ErrorClass)> {
    let all = ErrorClass::ALL.into_iter().filter(|class| rule_of(*class) == Some(code));
    let counted = all.filter_map(|class| Some((*seen.group.errors.get(class.name())?, class)));
    let mut found: Vec<_> = counted.collect();
    found.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    found
}

fn of_classes(seen: &Seen<'_>, code: u16) -> Option<Finding> {
    let kinds = classes(seen, code);
    let (_, first) = *kinds.first()?;
    // Streams that broke off after their first event are cut, which PL304 says.
    let streams = seen.group.streams.as_ref();
    let truncated = seen.group.errors.get(ErrorClass::StreamTruncated.name());
    let cut = streams.map_or(0, |streams| streams.cut);
    let cut =
        if code == 205 { cut.saturating_sub(truncated.copied().unwrap_or_default()) } else { 0 };
    let n = kinds.iter().map(|(number, _)| number).sum::<u64>().saturating_sub(cut);
    let names: Vec<_> = kinds.iter().take(NAMED).map(|(_, class)| class.name()).collect();
    let words: Vec<_> = kinds.iter().take(NAMED).map(|(_, class)| class.words()).collect();
    let finding = seen
        .of_all(code, n)
        .with("class", words.join(", "))
        .with("action", action_of_class(first))
        .with_some("message", seen.message(first.name()));
    (n > 0).then(|| seen.with_span(finding, |kind| names.contains(&kind)))
}

/// The statuses in a range without those that another rule has: their number, and their names.
fn statuses(seen: &Seen<'_>, from: u16, to: u16, without: &[u16]) -> Vec<(u64, u16)> {
    let all = seen.group.statuses.range(from..to);
    let counted = all.filter(|(status, _)| !without.contains(status));
    let mut found: Vec<_> = counted.map(|(status, number)| (*number, *status)).collect();
    found.sort_unstable_by(|one, other| other.cmp(one));
    found
}

fn names(statuses: &[(u64, u16)]) -> Vec<String> {
    statuses.iter().take(NAMED).map(|(_, status)| status.to_string()).collect()
}

fn server_errors(seen: &Seen<'_>) -> Option<Finding> {
    let overloaded = seen.group.statuses.get(&529).copied().unwrap_or_default();
    let kinds = classes(seen, 204);
    let n = kinds.iter().map(|(number, _)| number).sum::<u64>().saturating_sub(overloaded);
    let mut shown = names(&statuses(seen, 500, 600, &[529]));
    let inside = kinds.iter().filter(|(_, class)| *class != ErrorClass::ServerError);
    shown.extend(inside.clone().map(|(_, class)| class.words().to_owned()));
    let (_, first) = *kinds.first()?;
    let finding = seen
        .of_all(204, n)
        .with("status", shown.join(", "))
        .with_some("message", seen.message(first.name()));
    shown.extend(inside.map(|(_, class)| class.name().to_owned()));
    (n > 0).then(|| seen.with_span(finding, |kind| shown.iter().any(|own| own == kind)))
}

/// Refusals that no scenario expects. Their statuses are not counted apart where some are expected.
fn unexpected_status(seen: &Seen<'_>) -> Option<Finding> {
    let counters = &seen.group.counters;
    let kinds = classes(seen, 206);
    let others: u64 = kinds.iter().map(|(number, _)| number).sum();
    let refused = counters.refused();
    let limited = seen.group.statuses.get(&429).copied().unwrap_or_default();
    let n = refused.saturating_sub(limited) + others;
    let own = statuses(seen, 400, 500, &[429]);
    let is_certain = refused == counters.rejected;
    let mut shown = if is_certain { names(&own) } else { Vec::new() };
    shown.extend(kinds.iter().map(|(_, class)| class.name().to_owned()));
    let first = own.first().map(|(_, status)| *status).filter(|_| is_certain && refused > limited);
    let kind = first.map_or_else(
        || kinds.first().map(|(_, class)| class.name().to_owned()),
        |status| Some(format!("status {status}")),
    );
    let action = match (first, kinds.first()) {
        (None, Some((_, class))) => action_of_class(*class),
        _ => action_of_status(first, seen.has_models()),
    };
    if shown.is_empty() {
        shown.push("an unexpected 4xx".to_owned());
    }
    let finding = seen
        .of_all(206, n)
        .with("status", shown.join(", "))
        .with("action", action)
        .with_some("message", kind.and_then(|kind| seen.message(&kind)));
    (n > 0).then(|| seen.with_span(finding, |kind| shown.iter().any(|own| own == kind)))
}

/// Statuses of a rate limit, as far as no scenario expects them.
fn rate_limited(seen: &Seen<'_>) -> Option<Finding> {
    let Counters { failed, .. } = seen.group.counters;
    let most = [(429, seen.group.counters.refused()), (529, failed)];
    let counted = most.map(|(status, most)| {
        (status, seen.group.statuses.get(&status).map_or(0, |number| most.min(*number)))
    });
    let all: Vec<_> = counted.into_iter().filter(|(_, number)| *number > 0).collect();
    let n: u64 = all.iter().map(|(_, number)| number).sum();
    let shown: Vec<String> = all.iter().map(|(status, _)| status.to_string()).collect();
    let conversations = seen.summary.health.conversations.as_ref();
    let waits = conversations.map_or(0, |all| all.retry_after_waits);
    let retry_after = match (seen.group.counters.retry_after_seen, waits) {
        // Rows do not have it.
        (0, _) if seen.summary.metadata.run.ended == RunEnd::Unfinished => "is unknown",
        (0, _) => "was absent",
        (_, 0) => "was ignored",
        _ => "was honored",
    };
    let finding =
        seen.of_all(207, n).with("status", shown.join(", ")).with("retry_after", retry_after);
    (n > 0).then(|| seen.with_span(finding, |kind| shown.iter().any(|own| own == kind)))
}

fn no_response(seen: &Seen<'_>) -> Option<Finding> {
    let counters = &seen.group.counters;
    let streams = seen.group.streams.as_ref();
    // Streams that began and had no end in time are in PL304.
    let timed_out = counters.timed_out.saturating_sub(streams.map_or(0, |streams| streams.no_end));
    let is_interrupted = seen.summary.metadata.run.ended == RunEnd::Interrupted;
    let open = if is_interrupted { 0 } else { counters.in_flight };
    let within = match (timed_out, open) {
        (_, 0) => "before their timeout",
        (0, _) => "before the end of the drain",
        _ => "before their timeout or the end of the drain",
    };
    let finding = seen.of_all(208, timed_out + open).with("within", within);
    (timed_out + open > 0).then(|| seen.with_span(finding, |kind| kind == TIMED_OUT))
}

/// A kind of failure in words, and what to do: an error class, `status 429`, or requests without a
/// response.
pub fn words_of_failure(kind: &str, has_models: bool) -> (String, &'static str) {
    if let Some(class) = ErrorClass::ALL.into_iter().find(|class| class.name() == kind) {
        return (class.words().to_owned(), action_of_class(class));
    }
    match kind.strip_prefix("status ") {
        Some("429") => (format!("rate limited ({kind})"), action_of_status(Some(429), has_models)),
        Some(status) => (kind.to_owned(), action_of_status(status.parse().ok(), has_models)),
        None => ("no response".to_owned(), CHECK_LOG),
    }
}

/// The advice for a status.
const fn action_of_status(status: Option<u16>, has_models: bool) -> &'static str {
    match status {
        Some(401 | 403) if !has_models => "send credentials with -H, or expect the status",
        Some(404) if !has_models => "check the path, or expect the status (--expect 404)",
        Some(401 | 403) => "set the right key with --key or PLIMSOLL_KEY",
        Some(404) => "check the path in the URL, --protocol and --model",
        Some(400 | 422) => "check the parameters that the message names",
        Some(429) => "lower the load, or raise the limit of the target",
        Some(500..) => CHECK_LOG,
        _ => "check the request: the target rejects it",
    }
}

/// The advice for an error class, as in the troubleshooting guide.
const fn action_of_class(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::ConnectRefused => "start the target, or correct its URL",
        ErrorClass::Dns | ErrorClass::ConnectTimeout | ErrorClass::Unreachable => {
            "check the host name and the network route to it"
        }
        ErrorClass::Proxy => "check the address and the credentials of the proxy",
        ErrorClass::TlsCertificate => "name the root certificate with --ca-file, or use --insecure",
        ErrorClass::Redirect => "use the URL that the redirect names",
        ErrorClass::UnexpectedStatus => "expect the status (`http.expect`)",
        ErrorClass::TlsHandshake | ErrorClass::MalformedHead => {
            "check the port: TLS for `https`, HTTP/1.1 for `http`"
        }
        ErrorClass::ContentType | ErrorClass::MalformedBody => {
            "check --protocol and the path: another API format, or a login page"
        }
        _ => match class.side() {
            Side::Generator => "run `plimsoll doctor`",
            Side::Network | Side::Target => CHECK_LOG,
        },
    }
}
