//! The distributions: of what is added, and of the times.

use plimsoll_page::{Input, page};
use plimsoll_versus::{AddedDistribution, Role, TargetResult, Versus};

use crate::pages::{html_of, run, run_of, versus};
use crate::support::{charts, rows};

fn with_added() -> Versus {
    let targets = ["direct", "direct'", "gateway"];
    let mut versus = versus(&["direct", "gateway"]);
    let control = TargetResult {
        name: targets[1].to_owned(),
        role: Role::Control,
        ..TargetResult::default()
    };
    versus.targets.insert(1, control);
    let added = |target: &str, bins: &[(i32, u64)]| AddedDistribution {
        target: target.to_owned(),
        reference: "direct".to_owned(),
        pairs: bins.iter().map(|(_, pairs)| pairs).sum(),
        bins: bins.to_vec(),
    };
    versus.added =
        vec![added("direct'", &[(-4, 500), (3, 500)]), added("gateway", &[(56, 750), (80, 250)])];
    versus
}

/// Numbers that follow a letter in a path.
fn after(path: &str, letter: char) -> Vec<f64> {
    let parts = path.split(letter).skip(1);
    parts
        .map(|part| -> f64 {
            let end = part.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(part.len());
            part[..end].parse().unwrap()
        })
        .collect()
}

#[test]
fn steps_are_as_high_as_their_share_of_the_pairs() {
    let made = run(1, 4, &["direct", "gateway"], 40);
    let versus = with_added();
    let html = html_of(&made, Some(&versus));
    let drawn = charts(&html);
    let svg = &drawn.iter().find(|(id, _)| id == "added-distribution").unwrap().1;
    let path = svg.split("<path class=\"l l0\" d=\"").nth(1).unwrap().split('"').next().unwrap();
    let heights = after(path, 'V');
    let bottom = *heights.last().unwrap();
    let mut high: Vec<_> = heights.iter().map(|y| bottom - y).filter(|h| *h > 0.0).collect();
    high.sort_by(f64::total_cmp);
    // Two hills: of 75 % and of 25 % of the pairs.
    assert_eq!(high.len(), 2, "{heights:?}");
    assert!((high[1] / high[0] - 3.0).abs() < 0.02, "{high:?}");
    assert!(svg.contains("<path class=\"pale\""), "the control is an area in grey");
    // The bins in the table begin and end where their formula says: 1000 (2^(b/8) - 1) ns.
    let shown = rows(&html, "added-distribution");
    let near = |text: &str, ns: f64| {
        let unit = text.find(|c: char| c.is_alphabetic()).unwrap();
        let size = match &text[unit..] {
            "ns" => 1.0,
            "us" => 1e3,
            "ms" => 1e6,
            _ => 1e9,
        };
        let found = text[..unit].parse::<f64>().unwrap() * size;
        assert!((found / ns - 1.0).abs() < 0.006, "{text} and {ns}");
    };
    for (row, bin) in shown.iter().zip([-4_i32, 3, 56, 80]) {
        let edge = |bin: i32| {
            f64::from(bin.signum()) * 1_000.0 * (2f64.powf(f64::from(bin.abs()) / 8.0) - 1.0)
        };
        near(&row[1], edge(bin));
        near(&row[2], edge(bin + 1));
    }
    assert_eq!(shown.iter().map(|row| &*row[3]).collect::<Vec<_>>(), ["500", "500", "750", "250"]);
    expect_test::expect_file![format!(
        "{}/tests/golden/added-distribution.svg.txt",
        env!("CARGO_MANIFEST_DIR")
    )]
    .assert_eq(&format!("{}\n", svg.replace("><", ">\n<")));
}

#[test]
fn what_is_invalid_is_not_drawn() {
    let made = run(1, 4, &["direct", "gateway"], 40);
    let has = |versus: &Versus| {
        html_of(&made, Some(versus)).contains("<section id=\"added-distribution\"")
    };
    assert!(has(&with_added()));
    let mut invalid = with_added();
    invalid.invalid.push("the control differs".to_owned());
    assert!(!has(&invalid));
}

/// The times of [`run`], sorted: 5 + (7 s + 13 n) % 56 ms, without those of the third second.
fn sorted_times(seconds: u64, per_second: u64) -> Vec<f64> {
    let mut all: Vec<f64> = (0..seconds)
        .filter(|s| *s != 2)
        .flat_map(|second| (0..per_second).map(move |n| 5 + (second * 7 + n * 13) % 56))
        .map(|ms| ms as f64)
        .collect();
    all.sort_by(f64::total_cmp);
    all
}

#[test]
fn shares_are_those_of_the_requests_and_end_where_samples_end() {
    let made = run(1, 6, &["direct"], 60);
    let times = sorted_times(6, 60);
    let html = html_of(&made, None);
    let shown = rows(&html, "shares-0");
    // "4.00%" as 400 of 10,000.
    let share = |row: &[String]| row[1].replace(['%', '.'], "").parse::<usize>().unwrap();
    for row in &shown {
        let rank = (share(row) * times.len()).div_ceil(10_000);
        let expected = times[rank - 1];
        let found: f64 = row[2].trim_end_matches("ms").parse().unwrap();
        assert!((found / expected - 1.0).abs() < 0.006, "{row:?} and {expected}");
    }
    // 300 requests: at both ends 10 of them are beyond, which is at 4 % and 96 %.
    assert_eq!(times.len(), 300);
    let (first, last) = (shown.first().unwrap(), shown.last().unwrap());
    assert_eq!((&*first[1], &*last[1]), ("4.00%", "96.00%"));
}

#[test]
fn scenarios_have_a_chart_each_with_every_target_and_one_axis() {
    let (mut summary, record) = run_of(2, 5, &["direct", "gateway"], 60, |_| {});
    // The same times again as those of a second scenario.
    summary.metadata.scenarios = vec!["simple".to_owned(), "long".to_owned()];
    let mut cells = summary.results.cells.clone();
    for cell in &mut cells {
        cell.scenario = Some("long".to_owned());
    }
    summary.results.cells.extend(cells);
    let input = Input {
        summary: &summary,
        timeline: Some(&record.timeline),
        exemplars: None,
        versus: None,
        server: &[],
    };
    let html = page(&input);
    let drawn: Vec<_> =
        charts(&html).into_iter().filter(|(id, _)| id.starts_with("shares-")).collect();
    assert_eq!(drawn.len(), 2);
    let axis = |svg: &str| {
        let labels = svg.split("text-anchor=\"middle\">").skip(1);
        labels.map(|rest| rest.split('<').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(axis(&drawn[0].1), axis(&drawn[1].1));
    assert!(html.contains("by share of requests: long"));
    assert_eq!(rows(&html, "shares-0"), rows(&html, "shares-1"), "the same times");
    // Warm-up is left out: the second stage of 5 s with 60 requests each.
    let targets: Vec<_> = rows(&html, "shares-0").iter().map(|row| row[0].clone()).collect();
    assert!(targets.contains(&"direct".to_owned()) && targets.contains(&"gateway".to_owned()));
    assert!(html.contains("of 300 requests; gateway"), "of the second stage alone");
}
