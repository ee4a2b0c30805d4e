//! What a pattern cannot check: check digits, dates, comparisons that are always true.
//!
//! A validator gets the whole text and the range that the pattern found, and answers with the
//! range that counts: the same one, a part of it, or none.

mod contact;
mod date;
mod european_ids;
mod ids;
mod money;
mod statement;

use std::ops::Range;

/// A validator by its name in rules.
#[derive(Debug)]
pub(crate) struct Validator {
    name: &'static str,
    /// What of the range counts.
    pub(crate) check: fn(&str, Range<usize>) -> Option<Range<usize>>,
    /// Whether it has looked at every part of the range itself, so that a refusal means that the
    /// search goes on behind it and not one byte further.
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
    whole("comparison", statement::always_true),
    whole("open_quote", statement::open_quote),
    whole("no_where", statement::no_where),
    whole("hex_text", statement::hex_text),
];

const fn whole(
    name: &'static str,
    check: fn(&str, Range<usize>) -> Option<Range<usize>>,
) -> Validator {
    Validator { name, check, exhaustive: false }
}

const fn part(
    name: &'static str,
    check: fn(&str, Range<usize>) -> Option<Range<usize>>,
) -> Validator {
    Validator { name, check, exhaustive: true }
}

/// The validator of that name.
pub(crate) fn named(name: &str) -> Option<&'static Validator> {
    VALIDATORS.iter().find(|validator| validator.name == name)
}

/// The names that rules may use.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    VALIDATORS.iter().map(|validator| validator.name)
}

/// The decimal digits of a part of a text.
fn digits(text: &str, range: &Range<usize>) -> Vec<u32> {
    slice(text, range).chars().filter_map(|character| character.to_digit(10)).collect()
}

fn slice<'t>(text: &'t str, range: &Range<usize>) -> &'t str {
    text.get(range.clone()).unwrap_or_default()
}

/// The sum of the products of digits and weights.
fn weighted(digits: &[u32], weights: &[u32]) -> u32 {
    digits.iter().zip(weights).map(|(digit, weight)| digit * weight).sum()
}

/// The formula of Luhn (ISO/IEC 7812-1, annex B): every second digit from the right is doubled and
/// the sum of all decimal digits must end in 0.
fn luhn(digits: &[u32]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| if at % 2 == 0 { *digit } else { digit * 2 / 10 + digit * 2 % 10 })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests;
