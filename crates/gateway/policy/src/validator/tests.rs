//! Tests of the validators.

use super::*;

/// Whether the named validator accepts all of a text.
fn accepts(name: &str, text: &str) -> bool {
    let validator = by_name(name).unwrap();
    (validator.check)(text, 0..text.len()) == Some(0..text.len())
}

#[test]
fn published_sample_numbers_pass_and_their_neighbours_do_not() {
    let rows = [
        ("card", "4111111111111111", "4111111111111112"),
        ("card", "378282246310005", "378282246310006"),
        ("iban", "GB29NWBK60161331926819", "GB29NWBK60161331926818"),
        ("uk_nhs", "9434765919", "9434765918"),
        ("br_cpf", "529.982.247-25", "529.982.247-52"),
        ("cn_resident", "11010519491231002X", "110105194912310020"),
        ("fr_nir", "255081416802538", "255081416802539"),
        ("de_tax", "86095742719", "86095742710"),
        ("es_dni", "12345678Z", "12345678A"),
        ("es_dni", "X1234567L", "Y1234567L"),
        ("se_person", "811228-9874", "811228-9875"),
        ("pl_pesel", "44051401359", "44051401358"),
        ("nl_bsn", "111222333", "111222334"),
        ("au_tfn", "123456782", "123456789"),
        ("it_fiscal", "RSSMRA85T10A562S", "RSSMRA85T10A562T"),
        ("date", "29.02.2000", "29.02.1900"),
    ];
    for (name, good, bad) in rows {
        assert!(accepts(name, good), "{name} {good}");
        assert!(!accepts(name, bad), "{name} {bad}");
    }
}

#[test]
fn verhoeff_catches_every_wrong_digit_and_every_swap_of_neighbours() {
    // 2363 is the example of Verhoeff's check in most descriptions of it.
    assert!(ids::verhoeff(&[2, 3, 6, 3]));
    assert!(!ids::verhoeff(&[2, 3, 6, 4]));
    assert!(!ids::verhoeff(&[3, 2, 6, 3]));
}

#[test]
fn a_card_is_found_beside_other_digits() {
    let text = "12 4111 1111 1111 1111 99";
    let card = by_name("card").unwrap();
    assert_eq!((card.check)(text, 0..text.len()), Some(3..22));
}
