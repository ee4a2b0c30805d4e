//! Limits.
use hyper::header::{HeaderName, HeaderValue};

use crate::exchange::Exchange;
use crate::refusal::Refusal;

pub(crate) async fn admit(
    _exchange: &Exchange,
    _extra: &mut Vec<(HeaderName, HeaderValue)>,
) -> Result<(), Refusal> {
    Ok(())
}
