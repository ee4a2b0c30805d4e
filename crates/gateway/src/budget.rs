//! Budgets.
use crate::service::{Answer, Call, json};

pub(crate) async fn show(_call: &Call) -> Answer {
    Ok(json(hyper::StatusCode::OK, ""))
}
