//! Checks that a pattern cannot express: check digits, dates, comparisons that are always true.
//!
//! A validator gets the whole text and the range that the pattern matched. It returns the range to
//! report: the same one, a part of it, or None.

mod contact;
mod date;
mod digits;
mod european_ids;
mod ids;
mod money;
mod sql;

use std::ops::Range;

/// A validator that rules refer to by name.
#[derive(Debug)]
pub(crate) struct Validator {
    name: &'static str,
    /// Returns the range to report.
    pub(crate) check: fn(&str, Range<usize>) -> Option<Range<usize>>,
    /// Whether it examines every part of the range. After a rejection the search continues after
    /// the range instead of one byte further.
    pub(crate) exhaustive: bool,
}

/// All validators. To add one, add a line.
const VALIDATORS: [Validator; 26] = [
    part("card", money::card),
    whole("iban", money::iban),
    whole("luhn", money::luhn_number),
    whole("us_ssn", ids::us_ssn),
    whole("uk_nino", ids::uk_nino),
    whole("uk_nhs", ids::uk_nhs),
    whole("ca_sin", ids::ca_sin),
    whole("br_cpf", ids::br_cpf),
    whole("in_aadhaar", ids::in_aadhaar),
    whole("cn_resident", ids::cn_resident),
    whole("kr_rrn", ids::kr_rrn),
    whole("au_tfn", ids::au_tfn),
    whole("es_dni", european_ids::es_dni),
    whole("it_fiscal", european_ids::it_fiscal),
    whole("fr_nir", european_ids::fr_nir),
    whole("de_tax", european_ids::de_tax),
    whole("nl_bsn", european_ids::nl_bsn),
    whole("se_person", european_ids::se_person),
    whole("pl_pesel", european_ids::pl_pesel),
    whole("date", date::date_of_birth),
    whole("email", contact::email),
    whole("phone", contact::phone),
    whole("comparison", sql::always_true),
    whole("open_quote", sql::open_quote),
    whole("no_where", sql::no_where),
    whole("hex_text", sql::hex_text),
];

/// A validator that judges the matched range as a whole.
const fn whole(
    name: &'static str,
    check: fn(&str, Range<usize>) -> Option<Range<usize>>,
) -> Validator {
    Validator { name, check, exhaustive: false }
}

/// A validator that looks for a valid part in the matched range.
const fn part(
    name: &'static str,
    check: fn(&str, Range<usize>) -> Option<Range<usize>>,
) -> Validator {
    Validator { name, check, exhaustive: true }
}

/// The validator with this name.
pub(crate) fn by_name(name: &str) -> Option<&'static Validator> {
    VALIDATORS.iter().find(|validator| validator.name == name)
}

/// The names that rules may use.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    VALIDATORS.iter().map(|validator| validator.name)
}

#[cfg(test)]
mod tests;
