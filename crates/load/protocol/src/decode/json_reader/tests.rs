//! Compares the reader with `serde_json`.

use super::*;
use proptest::prelude::*;
use serde_json::Value;

fn read(json: &str) -> Result<Str<'_>> {
    from_str(json)
}

#[test]
fn a_string_is_borrowed_unless_it_has_escapes() {
    assert!(matches!(read(r#" "plain" "#).unwrap().0, Cow::Borrowed("plain")));
    assert_eq!(&*read(r#""a\nb""#).unwrap(), "a\nb");
    assert_eq!(&*read(" \"\\ud83d\\udea2 é\\\"\"").unwrap(), "🚢 é\"");
    assert_eq!(&*read("null").unwrap(), "");
    assert!(read(r#""\ud83d""#).is_err(), "half a character");
}

#[test]
fn the_first_element_counts_and_an_object_by_itself_is_one() {
    let read =
        |json| from_str::<FirstElement<Thing<'_>>>(json).map(|first| first.0.map(|t| t.size));
    assert_eq!(read("[]").unwrap(), None);
    let size = Reported::Count(7);
    assert_eq!(read(r#"[{"size":7},"x",null]"#).unwrap(), Some(size));
    assert_eq!(read(r#"["x",{"size":7}]"#).unwrap(), Some(size), "others do not count");
    assert_eq!(read(r#"{"size":7}"#).unwrap(), Some(size));
    assert!(read("7").is_err());
}

#[test]
fn counts_are_whole_numbers_from_zero_on_and_nothing_else_is_one() {
    let read = |json| from_str::<Reported<'_>>(json).unwrap();
    assert_eq!(read("null"), Reported::Missing);
    for (json, count) in [("0", 0), (" 4294967295 ", u32::MAX), ("12.0", 12), ("1e3", 1_000)] {
        assert_eq!(read(json), Reported::Count(count), "{json}");
    }
    for json in
        ["-1", "1.5", "4294967296", "18446744073709551615", "1e400", "\"1\"", "[1]", "{}", "true"]
    {
        assert_eq!(read(json), Reported::Impossible(json));
    }
    assert!(from_str::<Reported<'_>>("01").is_err(), "not JSON");
}

#[test]
fn a_member_of_another_kind_counts_as_absent() {
    for kind in ["7", "true", "[\"a\"]", r#"{"b":[1]}"#, "null"] {
        let text = format!(r#"{{"type":{kind},"size":7}}"#);
        let thing: Thing<'_> = from_str(&text).unwrap();
        assert_eq!((&*thing.kind, thing.size), ("", Reported::Count(7)), "{kind}");
    }
    let absent = |text| from_str::<Option<Thing<'_>>>(text).unwrap().is_none();
    assert!(absent("7") && absent("[{}]") && absent("null") && !absent("{}"));
    let many = from_str::<Vec<Thing<'_>>>(r#"[{"size":7},null,"x",{"size":8}]"#).unwrap();
    assert_eq!(many.iter().map(|t| t.size).collect::<Vec<_>>(), [7, 8].map(Reported::Count));
    for broken in [r#"{"type":[}"#, r#"{"type":tru}"#] {
        assert!(from_str::<Thing<'_>>(broken).is_err(), "{broken}");
    }
}

#[derive(Debug, Default)]
struct Thing<'a> {
    kind: Str<'a>,
    size: Reported<'a>,
    rest: Option<Raw<'a>>,
}
from_object!(Thing<'a> { kind = "type", size, rest });

#[test]
fn members_are_found_by_name_in_any_order_and_the_rest_is_skipped() {
    let text =
        r#"{"x":[1,{"type":"no"}],"size":3,"t\u0079pe":"yes","rest": {"a":[ 1 ]} ,"y":null}"#;
    let thing: Thing<'_> = from_str(text).unwrap();
    assert_eq!((&*thing.kind, thing.size), ("yes", Reported::Count(3)));
    assert_eq!(thing.rest.unwrap().0, r#"{"a":[ 1 ]}"#);
    let nothing: Thing<'_> = from_str("{ }").unwrap();
    assert!(nothing.kind.is_empty() && nothing.size == Reported::Missing && nothing.rest.is_none());
    assert!(from_str::<Thing<'_>>("[]").is_err());
}

#[test]
fn an_error_names_the_expected_token_and_its_position() {
    let error = from_str::<Thing<'_>>(r#"{"size": -x}"#).unwrap_err();
    assert_eq!(error.to_string(), "expected a digit at byte 10");
}

#[test]
fn nesting_is_limited() {
    let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(from_str::<Raw<'_>>(&nested(usize::from(MAX_DEPTH))).is_ok());
    assert!(from_str::<Raw<'_>>(&nested(usize::from(MAX_DEPTH) + 1)).is_err());
    assert!(from_str::<Raw<'_>>(&"[".repeat(1_000_000)).is_err());
}

/// Fragments of JSON, most of them misplaced.
fn crumbs() -> impl Strategy<Value = String> {
    let crumb = prop::sample::select(vec![
        "{", "}", "[", "]", ":", ",", "\"", "\\", "\"a\"", "\"b\":", "null", "true", "false",
        "nul", "0", "-", "1", "12", ".5", "e3", "E-", "01", " ", "\n", "\t", "\\u00e9", "\\x",
        "\u{1}", "é", "\\\"", "\u{7f}",
    ]);
    prop::collection::vec(crumb, 0..9).prop_map(|crumbs| crumbs.concat())
}

/// Any JSON value, with random white space.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The oracle is serde's own skipping, which does not check the values of escapes either.
    #[test]
    fn text_is_accepted_exactly_if_serde_accepts_it(text in crumbs()) {
        let oracle = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        prop_assert_eq!(from_str::<Raw<'_>>(&text).is_ok(), oracle, "{}", text);
    }

    #[test]
    fn every_value_is_read_and_no_cut_of_it(value in value(), cut in 0usize..400) {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let raw: Raw<'_> = from_str(&text).unwrap();
            prop_assert_eq!(raw.0, &text);
            let cut = text.floor_char_boundary(cut);
            let oracle = serde_json::from_str::<serde::de::IgnoredAny>(&text[..cut]).is_ok();
            prop_assert_eq!(from_str::<Raw<'_>>(&text[..cut]).is_ok(), oracle);
        }
    }

    #[test]
    fn strings_are_read_as_serde_reads_them(text in any::<String>()) {
        let json = Value::from(text.as_str()).to_string();
        prop_assert_eq!(&*read(&json).unwrap(), &text);
    }
}
