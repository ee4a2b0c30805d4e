//! `--claim 'conns=100 rps=21989 mean=4.59ms'` as a list of pairs.

use crate::document::Document;
use crate::error::AuditError;
use crate::heading;
use crate::number::{Locale, Number};

pub(crate) fn read(claim: &str) -> Result<Document, AuditError> {
    let pairs: Option<Vec<_>> = claim.split_whitespace().map(read_pair).collect();
    let mut document = Document::default();
    document.pairs(None, pairs.unwrap_or_default());
    if document.grids.is_empty() { Err(AuditError::Claim(claim.to_owned())) } else { Ok(document) }
}

/// Line, name and value of `name=value`, if a heading and a number are in it.
fn read_pair(pair: &str) -> Option<(usize, String, String)> {
    let (name, value) = pair.split_once('=')?;
    heading::meaning(name)?;
    Number::parse(value, Locale::Point)?;
    Some((1, name.to_owned(), value.to_owned()))
}
