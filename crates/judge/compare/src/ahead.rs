//! What a comparison could see, before the new runs exist.

use plimsoll_metrics::{Gate, Margin, Worse};
use plimsoll_report::Style;
use plimsoll_report::format::DASH;
use plimsoll_report::table::Table;
use plimsoll_stats::moments::variance;
use plimsoll_stats::runs::{History as Spread, runs_needed};
use plimsoll_stats::student_t::quantile;

use crate::comparison::{Options, check_distinct, obstacles, spreads};
use crate::defaults;
use crate::error::CompareError;
use crate::format;
use crate::gate_words;
use crate::gates::{FigureUnit, mean, measure};
use crate::history::History;
use crate::judge::Repeated;
use crate::machine::{self, fingerprint};
use crate::stored_run::StoredRun;

/// One gate, before there are new runs.
#[derive(Clone, Debug, PartialEq)]
pub struct AheadGate {
    /// The figure.
    pub name: String,
    unit: FigureUnit,
    margin: Margin,
    mean: Option<f64>,
    /// Standard deviation between runs; `None` if it is not known.
    pub run_sd: Option<f64>,
    /// The change that would be seen in 80 % of the cases, with as many new runs as old ones.
    pub detectable: Option<f64>,
    /// Runs on each side with which unchanged code passes in 80 % of the cases.
    pub runs_needed: Option<u32>,
    why_not: Option<String>,
}

/// What could be seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Ahead {
    runs: usize,
    /// Why the runs are no base.
    pub obstacles: Vec<String>,
    /// The gates.
    pub gates: Vec<AheadGate>,
}

/// What the last column is.
pub(crate) const MEANS: &str = "With that many runs on each side, unchanged code passes each gate in 80 % of the cases. \
                                Let old and new runs take turns.";

/// Looks ahead: what a comparison with these old runs could see.
///
/// # Errors
/// As [`crate::compare`].
pub fn ahead(
    base: &[StoredRun],
    options: &Options,
    history: Option<&History>,
) -> Result<Ahead, CompareError> {
    machine::check_names(&options.allow_different)?;
    let all: Vec<_> = base.iter().collect();
    check_distinct(&all)?;
    let obstacles = obstacles(&all, &machine::differences(&all, &options.allow_different));
    let history = history.zip(base.first().map(fingerprint));
    let spreads = spreads(options, history.as_ref(), base);
    let (gates, _) = defaults::gates(&options.gates, base, &[])?;
    let gates = gates.iter().map(|gate| look(gate, base, spreads.of(gate))).collect();
    Ok(Ahead { runs: base.len(), obstacles, gates })
}

fn look(gate: &Gate, base: &[StoredRun], history: Option<Spread>) -> AheadGate {
    let values = base.iter().map(|run| Ok(measure(gate, run)?.value));
    let values: Result<Vec<f64>, String> = values.collect();
    let margin = gate.margin();
    let mut found = AheadGate {
        name: gate.name().to_owned(),
        unit: FigureUnit::of(gate),
        margin,
        mean: None,
        run_sd: None,
        detectable: None,
        runs_needed: None,
        why_not: None,
    };
    let values = match values {
        Ok(values) => values,
        Err(why) => return AheadGate { why_not: Some(why), ..found },
    };
    found.mean = mean(margin, &values);
    let Some(spread) = Repeated::scaled(margin, &values).and_then(|own| pooled(&own, history))
    else {
        let why = "one run says nothing about the spread between runs".to_owned();
        return AheadGate { why_not: Some(why), ..found };
    };
    let runs = base.len().max(2) as f64;
    let freedom =
        if spread.degrees_of_freedom.is_infinite() { f64::INFINITY } else { 2.0 * runs - 2.0 };
    let t = quantile(0.975, freedom) + quantile(0.8, freedom);
    let amount = t * spread.sd * (2.0 / runs).sqrt();
    let (scaled_margin, shown) = match (margin, gate.worse()) {
        (Margin::Points(points), _) => (points, amount),
        (Margin::Relative(share), Worse::Higher) => (share.ln_1p(), amount.exp_m1()),
        (Margin::Relative(share), Worse::Lower) => (-(-share).ln_1p(), -(-amount).exp_m1()),
    };
    found.run_sd = Some(spread.sd);
    found.detectable = Some(shown);
    found.runs_needed = runs_needed(spread.sd, scaled_margin);
    found
}

/// The spread of these runs, together with what is known otherwise.
fn pooled(own: &[f64], history: Option<Spread>) -> Option<Spread> {
    let own = variance(own).map(|variance| (variance, own.len() as f64 - 1.0));
    match (own, history) {
        (own, Some(known)) if own.is_none() || known.degrees_of_freedom.is_infinite() => {
            Some(known)
        }
        (Some((variance, freedom)), known) => {
            let (squares, more) = known.map_or((0.0, 0.0), |known| {
                (known.sd * known.sd * known.degrees_of_freedom, known.degrees_of_freedom)
            });
            let degrees_of_freedom = freedom + more;
            let sd = ((variance * freedom + squares) / degrees_of_freedom).sqrt();
            Some(Spread { sd, degrees_of_freedom })
        }
        (None, _) => None,
    }
}

impl Ahead {
    /// For people, at most `width` columns wide: the whole of its screen.
    pub fn text(&self, width: usize) -> String {
        self.screen().whole(Style::plain(width))
    }

    pub(crate) fn headline(&self) -> String {
        let runs = self.runs;
        let s = if runs == 1 { "" } else { "s" };
        format!("compare: {runs} old run{s}, no new ones: what a comparison could see")
    }

    /// Why gates could not be looked at.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = String> {
        let unknown = self.gates.iter().filter_map(|gate| Some((gate, gate.why_not.as_ref()?)));
        unknown.map(|(gate, why)| format!("{}: {why}", gate.name))
    }

    pub(crate) fn table(&self) -> Table {
        let each = self.runs.max(2);
        let sees = format!("{each} + {each} see");
        let mut table =
            Table::new(["gate", "base", "sd of runs", &sees, "margin", "runs needed, each"]);
        for gate in &self.gates {
            let amount = |amount| format::amount(gate.margin, amount);
            let (Margin::Relative(margin) | Margin::Points(margin)) = gate.margin;
            let needed = match (gate.run_sd, gate.runs_needed) {
                (None, _) => DASH.to_owned(),
                (Some(_), None) => "over 1,000".to_owned(),
                (Some(_), Some(runs)) => runs.to_string(),
            };
            table.row([
                gate.name.clone(),
                gate_words::value(gate.unit, gate.mean),
                gate.run_sd.map_or_else(|| DASH.to_owned(), amount),
                gate.detectable.map_or_else(|| DASH.to_owned(), amount),
                amount(margin),
                needed,
            ]);
        }
        table
    }
}
