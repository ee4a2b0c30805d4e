//! The id that identifies a call in its row, and at the tool server.

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

use crate::exchange::request_context::RequestContext;
use crate::layers::tool_server::Trace;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Sets the request's id for its row, if it has none: the id of its trace (W3C Trace Context), or a
/// new one. Returns the headers with the id for a tool server.
pub(crate) fn of(context: &mut RequestContext, headers: &HeaderMap) -> Trace {
    let parent = headers.get(TRACEPARENT).filter(|value| trace_id(value).is_some());
    let mut trace: Trace = parent.map(|value| (TRACEPARENT, value.clone())).into_iter().collect();
    let header = context.config.request_id().cloned();
    trace.extend(header.zip(context.request_id.clone()));
    if context.request_id.is_none() && context.worker.state.request_log.is_enabled() {
        let id = parent.and_then(trace_id).map_or_else(
            || format!("{:016x}", context.worker.next_request_number()),
            str::to_owned,
        );
        context.request_id = HeaderValue::try_from(id).ok();
    }
    trace
}

/// The trace id of `00-TRACE-PARENT-FLAGS`.
fn trace_id(value: &HeaderValue) -> Option<&str> {
    let text = value.to_str().ok()?;
    let parts: Vec<&str> = text.split('-').collect();
    let [version, trace, parent, flags] = parts.as_slice() else { return None };
    let fits = is_hex(version, 2) && is_hex(trace, 32) && is_hex(parent, 16) && is_hex(flags, 2);
    (fits && trace.bytes().any(|byte| byte != b'0')).then_some(*trace)
}

fn is_hex(part: &str, length: usize) -> bool {
    part.len() == length && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_id_is_read_from_a_well_formed_header_only() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let zeros = "0".repeat(32);
        for (value, expected) in [
            (format!("00-{trace}-00f067aa0ba902b7-01"), Some(trace)),
            (format!("00-{zeros}-00f067aa0ba902b7-01"), None),
            (format!("00-{}-00f067aa0ba902b7-01", trace.to_uppercase()), None),
            (format!("00-{trace}-00f067aa0ba902b7"), None),
            (format!("00-{trace}x-00f067aa0ba902b7-01"), None),
            (String::new(), None),
        ] {
            let value = HeaderValue::try_from(value).unwrap();
            assert_eq!(trace_id(&value), expected, "{value:?}");
        }
    }
}
