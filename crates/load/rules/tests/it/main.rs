//! The reference page of all rules, `docs/reference/rules.md`, is up to date.

use plimsoll_rules::Rule;

const HEAD: &str = "# Rules

Generated from `crates/load/rules/rules.md`; do not edit. To refresh it: `UPDATE_EXPECT=1 cargo test -p plimsoll-rules`.

Every statement beside a figure is a rule. `findings` of `summary.json` lists those that fired, with code, level and
values. Levels: invalid (exit code 3), fail (exit code 1), warning, note. `--ignore PL204` leaves out a warning or a note;
`--allow-invalid` accepts an invalid run. Some rules have another level where their page says so. A part in brackets is
left out where a value is unknown.

";

#[test]
fn the_reference_page_equals_the_table() {
    let pages: Vec<_> = Rule::all().iter().map(Rule::page).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/rules.md");
    expect_test::expect_file![path].assert_eq(&(HEAD.to_owned() + &pages.join("\n")));
}
