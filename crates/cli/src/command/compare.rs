//! `plimsoll compare`: are new runs worse than old ones?

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum, ValueHint};
use plimsoll_compare::{CompareError, Comparison, Options, StoredRun, Verdict, compare};
use plimsoll_report::format::utc_compact;
use plimsoll_runner::folder::{RunDir, file, unix_nanos};

use super::report::found::only_run_in;
use crate::console::{self, Show};
use crate::exit::{Exit, UsageError};
use crate::flags::{FolderFlags, ScreenFlags, percent};
use crate::progress::{StatusOutput, Steps, Ui, UiFlag};

const AFTER: &str = include_str!("compare.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Folders of the old runs, or a folder that contains a single run
    #[arg(required = true, value_name = "BASE", value_hint = ValueHint::DirPath)]
    base: Vec<PathBuf>,
    /// Folders of the new runs
    #[arg(long, required = true, value_name = "NEW", num_args = 1.., value_hint = ValueHint::DirPath)]
    new: Vec<PathBuf>,
    #[command(flatten)]
    rules: Rules,
    #[command(flatten)]
    output: Output,
}

/// How runs are compared.
#[derive(Args, Debug)]
#[command(next_help_heading = "Comparison")]
struct Rules {
    /// Maximum regression of a figure, like `ttft.p99=10%`, `throughput{stage:2}=2%` or
    /// `error_rate=0.1pp` (repeatable) [default: `gate` of the new runs' profile, else the usual
    /// ones]
    #[arg(long = "gate", value_name = "FIGURE=MARGIN", value_parser = parse_gate)]
    gates: Vec<(String, String)>,
    /// Compare runs although these differ: plan, model, build, features, version, cpu, count,
    /// quota, affinity, governor, kernel, memory, clock, mock
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    allow_different: Vec<String>,
    /// Use the simple rule for one old and one new run: fail if throughput or a time of a stage is
    /// worse by more than N percent. It ignores random variation
    #[arg(long, value_name = "N", value_parser = parse_percent)]
    regress_pct: Option<f64>,
    /// Exit code of an inconclusive comparison
    #[arg(long, value_enum, default_value_t = Inconclusive::Fail)]
    inconclusive: Inconclusive,
}

/// Exit code of an inconclusive gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Inconclusive {
    /// Exit code 4
    Fail,
    /// Exit code 0; the report still says so
    Pass,
}

/// The files of a comparison.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
struct Output {
    #[command(flatten)]
    folder: FolderFlags,
    /// Write the comparison as Markdown, for a comment of a pull request
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    markdown: Option<PathBuf>,
    /// Write it as `JUnit` XML: a test case for each gate
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    junit: Option<PathBuf>,
    /// Write it as JSON, with everything
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<PathBuf>,
    #[command(flatten)]
    screen: ScreenFlags,
}

/// Columns of the whole text where it is not printed on a terminal.
pub(super) const WIDTH: usize = 110;

/// Compares the runs, prints the result and writes the files.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let show = flags.output.screen.show();
    let status = StatusOutput::open(Ui::for_process(UiFlag::Auto, false));
    let steps = Steps::passing(&status, "reading runs");
    let base = read(&flags.base, &steps)?;
    let options = flags.rules.options();
    let new = read(&flags.new, &steps)?;
    steps.step("comparing");
    let comparison = compare(&base, &new, &options).map_err(compare_error)?;
    drop(steps);
    let passes = flags.rules.inconclusive == Inconclusive::Pass;
    flags.output.write(&comparison, passes)?;
    let files = flags.output.files(&flags.output.store(&comparison)?);
    match show {
        Show::Full => {
            console::print(&comparison.text(console::full_style(WIDTH).width))?;
            console::print_line(&format!("\n{}", files.join("\n")))?;
        }
        Show::Screen | Show::Json | Show::Nothing => {
            let mut screen = comparison.screen();
            for line in &files {
                screen.file(line);
            }
            console::print_screen(&screen)?;
        }
    }
    Ok(exit(&comparison, passes))
}

/// Runs that must not be compared are never a pass.
const fn exit(comparison: &Comparison, inconclusive_passes: bool) -> Exit {
    match comparison.verdict {
        Verdict::Inconclusive if !comparison.obstacles.is_empty() => Exit::Invalid,
        Verdict::Inconclusive if inconclusive_passes => Exit::Pass,
        verdict => Exit::of(verdict),
    }
}

fn read(folders: &[PathBuf], steps: &Steps) -> Result<Vec<StoredRun>> {
    folders
        .iter()
        .enumerate()
        .map(|(index, folder): (usize, &PathBuf)| {
            steps.step(&format!("reading {}/{} {}", index + 1, folders.len(), folder.display()));
            // A results folder with a single run is treated as that run.
            let run = only_run_in(folder);
            StoredRun::read(run.as_deref().unwrap_or(folder)).map_err(compare_error)
        })
        .collect()
}

impl Rules {
    fn options(&self) -> Options {
        Options {
            gates: self.gates.clone(),
            allow_different: self.allow_different.clone(),
            regress: self.regress_pct,
        }
    }
}

impl Output {
    /// Lines about the folder and the other files that are written.
    fn files(&self, folder: &Path) -> Vec<String> {
        let files = [&self.markdown, &self.junit, &self.json].into_iter().flatten();
        let files: Vec<_> = files.map(|path| path.display().to_string()).collect();
        let others = (!files.is_empty()).then(|| format!("also: {}", files.join(", ")));
        std::iter::once(format!("files: {}", folder.display())).chain(others).collect()
    }

    fn write(&self, comparison: &Comparison, inconclusive_passes: bool) -> Result<()> {
        if let Some(path) = &self.markdown {
            write(path, &comparison.markdown())?;
        }
        if let Some(path) = &self.junit {
            write(path, &comparison.junit(inconclusive_passes)?)?;
        }
        if let Some(path) = &self.json {
            write(path, &(serde_json::to_string_pretty(comparison)? + "\n"))?;
        }
        Ok(())
    }
}

impl Output {
    /// Writes the folder of the comparison; returns its path.
    fn store(&self, comparison: &Comparison) -> Result<PathBuf> {
        let options = self.folder.options(None);
        let mut folder = RunDir::create(&options, &utc_compact(unix_nanos()), "compare")?;
        folder.keep();
        let json = serde_json::to_string_pretty(comparison)? + "\n";
        folder.write(file::COMPARISON, json.as_bytes())?;
        folder.write(file::TEXT, comparison.text(WIDTH).as_bytes())?;
        folder.write_page(|| plimsoll_page::comparison_page(comparison))?;
        Ok(folder.path().to_owned())
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| console::cannot_write(path))
}

fn compare_error(error: CompareError) -> anyhow::Error {
    if error.is_usage() { UsageError(error.to_string()).into() } else { error.into() }
}

/// Parses `ttft.p99=10%`.
fn parse_gate(text: &str) -> Result<(String, String), String> {
    let (figure, margin) = text.rsplit_once('=').ok_or("write FIGURE=MARGIN, like ttft.p99=10%")?;
    plimsoll_metrics::Gate::parse(figure, margin).map_err(|error| error.to_string())?;
    Ok((figure.to_owned(), margin.to_owned()))
}

/// Parses a percentage above 0, with or without the sign: 1.5% and 1.5 are 0.015.
fn parse_percent(text: &str) -> Result<f64, String> {
    let share = percent(text).filter(|share| *share > 0.0 && *share < 1.0);
    share.ok_or_else(|| "write a percentage between 0 and 100, like 1.5%".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_and_percentages_are_checked_at_once() {
        let gate = parse_gate("throughput{stage:@100:1s}=2%").unwrap();
        assert_eq!(gate, ("throughput{stage:@100:1s}".to_owned(), "2%".to_owned()));
        assert!(parse_gate("ttft.p99").unwrap_err().contains("FIGURE=MARGIN"));
        assert!(parse_gate("ttft.p99=10").unwrap_err().contains("no unit"));
        assert_eq!((parse_percent("1.5%"), parse_percent("10")), (Ok(0.015), Ok(0.1)));
        for text in ["0", "-1%", "100%", "many", "NaN", ""] {
            assert!(parse_percent(text).is_err(), "{text}");
        }
    }
}
