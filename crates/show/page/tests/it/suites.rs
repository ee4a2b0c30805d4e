//! The page of a suite.

use plimsoll_page::{Suite, suite_page};
use plimsoll_report::screen::{Chapter, Item, Rest, Rows, Screen, Tone};
use plimsoll_report::table::Table;
use plimsoll_versus::Versus;

use crate::pages::{HOSTILE, versus};
use crate::support::{charts, numbers, texts};

fn table(figure: &str) -> Table {
    let mut table = Table::new(["endpoint", "rate"]);
    table.row([HOSTILE, figure]);
    table
}

fn result() -> Screen {
    let mut screen = Screen::new(Rest::Flag);
    screen.title("suite tiers: three sizes of chat");
    screen.judged("", "bounds", vec![Item::judged(Tone::Bad, "FAIL", "p99: 12ms")], 1);
    let (table_of_screen, notes) = (table("21,989"), vec![format!("note of {HOSTILE}")]);
    screen.rows("Raw path", Rows { table: table_of_screen, notes, most: 8, ..Rows::default() });
    screen.stands_out((0..7).map(|n| Item::new(Tone::Unsure, &format!("doubt {n}"))));
    let mut chapter = Chapter::new("Sweep");
    chapter.table(&table("1,799"));
    chapter.list([("CPU", Some(HOSTILE.to_owned())), ("steal", None)]);
    chapter.text("to repeat it: plimsoll suite tiers --short");
    screen.chapter(chapter);
    screen.verdict(Tone::Unsure, "INCONCLUSIVE: 1 of 2 measurements");
    screen
}

fn page_of(comparisons: Vec<(&str, &Versus)>) -> String {
    suite_page(&Suite { name: "tiers", screen: &result(), comparisons })
}

#[test]
fn the_verdict_is_first_and_texts_stay_texts() {
    let html = page_of(Vec::new());
    let verdict = html.find("<b class=\"open\">INCONCLUSIVE</b>: 1 of 2").unwrap();
    assert!(verdict < html.find("<table").unwrap() && verdict < html.find("doubt 0").unwrap());
    // Five reasons are shown, the others are folded.
    let folded = html.split("<details>").nth(1).unwrap().split("</details>").next().unwrap();
    assert!(
        folded.contains("doubt 5") && folded.contains("doubt 6") && !folded.contains("doubt 4")
    );
    for part in ["21,989", "p99: 12ms", "1,799", "<dt>CPU</dt>", "plimsoll suite tiers"] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("<img") && !html.contains("<script") && !html.contains("steal"));
    assert_eq!(html.matches("&lt;img src=x onerror=alert(1)&gt;").count(), 4);
}

#[test]
fn one_chart_has_the_differences_of_every_valid_comparison() {
    let (valid, mut invalid) = (versus(&["bare", "gateway"]), versus(&["bare", "gateway"]));
    invalid.invalid.push("the control differs".to_owned());
    let html = page_of(vec![("each layer", &invalid), ("full stack", &valid)]);
    let drawn = charts(&html);
    assert_eq!(drawn.len(), 1);
    let rows = &drawn[0].1["rows"];
    assert_eq!(texts(rows, "row")[0], "full stack: gateway, response time, median");
    // The tail is only in the table, because the percentiles themselves were not compared.
    assert_eq!(numbers(rows, "added"), [0.12]);
    assert_eq!(numbers(rows, "low"), [0.08]);
    assert_eq!(numbers(rows, "high"), [0.18]);
}
