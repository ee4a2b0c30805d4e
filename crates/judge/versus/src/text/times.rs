//! The table of times: each target's median, what it adds, and the shift of its p99.

use plimsoll_report::format::{self, DASH};
use plimsoll_report::table::Table;

use super::Page;
use crate::figure::Figure;
use crate::result::{Difference, Kind, TargetResult, Versus};
use crate::role::Role;

pub(super) fn write(page: &mut Page, versus: &Versus) {
    page.line("");
    let mut table = Table::new(HEAD);
    let figures = shown(versus);
    for figure in &figures {
        table.row([figure.title()]);
        for target in &versus.targets {
            let [name, figures @ ..] = row(versus, target, *figure);
            table.row([format!("  {name}")].into_iter().chain(figures));
        }
    }
    page.table(&table);
    for reason in reasons(versus, &figures) {
        page.paragraph(&format!("-: {reason}."));
    }
}

/// The figures of the table: the headline, and what else the targets have. Of response and service
/// time only the one that stands for the whole request.
fn shown(versus: &Versus) -> Vec<Figure> {
    let other = match versus.whole {
        Figure::ServiceTime => Figure::ResponseTime,
        _ => Figure::ServiceTime,
    };
    let rest = Figure::ALL.into_iter().filter(|figure| *figure != versus.headline);
    let rest = rest.filter(|figure| *figure != other).filter(|figure: &Figure| {
        versus.targets.iter().any(|target| target.own(*figure).is_some_and(|own| own.count > 0))
    });
    std::iter::once(versus.headline).chain(rest).collect()
}

/// The columns of [`row`].
pub(super) const HEAD: [&str; 4] = ["", "p50", "added, median", "p99 shift"];

/// A target's median, what it adds, and the shift of its p99.
pub(super) fn row(versus: &Versus, target: &TargetResult, figure: Figure) -> [String; 4] {
    let own = target.own(figure).and_then(|own| own.p50_ns);
    let find = |kind, quantile| {
        let two = (&*target.name, versus.reference());
        versus.difference(two, figure, kind, quantile).and_then(Difference::measured)
    };
    let shown = |found: Option<(f64, f64, f64)>| {
        format::or_dash(found, |(value, low, high)| {
            format::difference(value / 1e6, low / 1e6, high / 1e6)
        })
    };
    let tail = if target.role == Role::Control && figure == versus.headline {
        control(versus)
    } else {
        shown(find(Kind::Shift, "p99"))
    };
    [
        target.name.clone(),
        format::or_dash(own, |nanos| format::time(nanos / 1e6)),
        shown(find(Kind::Added, "p50")),
        tail,
    ]
}

fn control(versus: &Versus) -> String {
    match &versus.control {
        Some(control) if control.differs => "CONTROL DIFFERS".to_owned(),
        Some(control) if control.unclear.is_some() => "control unclear".to_owned(),
        Some(control) if control.refused.is_none() => "control ok".to_owned(),
        _ => DASH.to_owned(),
    }
}

/// Why figures of the table are refused, each reason once.
pub(super) fn reasons(versus: &Versus, shown: &[Figure]) -> Vec<String> {
    let figures = shown
        .iter()
        .flat_map(|&figure| [(figure, Kind::Added, "p50"), (figure, Kind::Shift, "p99")]);
    let cells = figures.flat_map(|cell| versus.targets.iter().map(move |target| (cell, target)));
    let of_cells = cells.filter_map(|(cell, target)| {
        let what = format!("{} {} of {}", cell.0.title(), cell.2, target.name);
        Some((refused(versus, target, cell)?, what))
    });
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for (why, what) in medians(versus, shown).chain(of_cells) {
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, figures)) => figures.push(what),
            None => reasons.push((why, vec![what])),
        }
    }
    reasons
        .into_iter()
        .map(|(why, figures): (String, Vec<String>)| {
            let (first, more) = (&figures[0], figures.len() - 1);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{why} ({first}{more})")
        })
        .collect()
}

/// Medians that are left out, with the reason.
fn medians<'v>(
    versus: &'v Versus,
    shown: &'v [Figure],
) -> impl Iterator<Item = (String, String)> + 'v {
    shown.iter().copied().flat_map(|figure: Figure| {
        versus.targets.iter().filter_map(move |target| {
            let own = target.own(figure)?;
            (own.p50_ns.is_none() && own.p50_between_ns.is_some()).then(|| {
                let why = "the generator may have added more than 5 % of it".to_owned();
                (why, format!("{} of {} itself", figure.title(), target.name))
            })
        })
    })
}

fn refused(
    versus: &Versus,
    target: &TargetResult,
    (figure, kind, quantile): (Figure, Kind, &str),
) -> Option<String> {
    let two = (&*target.name, versus.reference());
    versus.difference(two, figure, kind, quantile)?.refused.clone()
}
