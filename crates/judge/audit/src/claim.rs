//! `--claim 'conns=100 rps=21989 mean=4.59ms'` as a list of pairs.

use crate::document::Document;
use crate::error::AuditError;
use crate::heading;
use crate::number::{Locale, Number};

pub(crate) fn read(claim: &str) -> Result<Document, AuditError> {
    let wrong = || AuditError::Claim(claim.to_owned());
    let mut pairs = Vec::new();
    for pair in claim.split_whitespace() {
        let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
        heading::meaning(name).ok_or_else(wrong)?;
        Number::parse(value, Locale::Point).ok_or_else(wrong)?;
        pairs.push((1, name.to_owned(), value.to_owned()));
    }
    let mut document = Document::default();
    document.pairs(None, pairs);
    if document.grids.is_empty() { Err(wrong()) } else { Ok(document) }
}
