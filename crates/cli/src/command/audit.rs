//! `plimsoll audit`: can published figures be true?

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, ValueHint};
use plimsoll_audit::{
    Audit, AuditError, LARGEST_FILE, Mapping, Report, SCHEMA, Vocabulary, audit_claim, audit_with,
};

use crate::console;
use crate::exit::{Exit, UsageError};

const AFTER: &str = "\
Examples:
  plimsoll audit benchmark.md                      a page with tables and sentences
  plimsoll audit --understood page.html            also how each heading was understood
  wrk -c100 -d30s --latency URL | plimsoll audit -          the output of a tool
  plimsoll audit --map 'Antwortzeit=mean:ms' --map 'Kosten=' seite.html   headings that it does not know
  plimsoll audit --claim 'conns=100 rps=21989 mean=4.59ms'  figures without a file
  plimsoll audit --json findings.json report.txt summary.json

Reads Markdown, HTML, CSV, plain text, the outputs of wrk, k6, oha, hey and ab, and report.txt and summary.json of Plimsoll. Every printed number stands for all values that its digits allow; a rule speaks only if none of them fits.

A heading that it does not know is explained by --map HEADING=MEANING, with a unit behind a colon: p50, p99.9, mean, min, max, rps, requests, errors, error rate, success rate, conns, threads, duration, transfer, size. Headings are printed by --understood.

What is checked:
  order             min <= p50 <= p99 <= max, and the mean within them
  mean              the mean against what the percentiles allow
  little            rate x latency against the number of clients
  total             rate x time against the number of requests
  shares            error and success rates against counts, and as whole numbers of requests
  samples           percentiles with fewer than 10 samples beyond them
  changes           improvements in per cent or times against the figures beside them
  targets, bands    a status or a band against the document's own limits
  bytes             bytes per second against rate and size
  upstream          a stack far below the upstream that it blames
  whole             totals against their parts, means of percentiles
  subtraction       an overhead that is a difference of percentiles
  words             \"sub-millisecond\", \"scales\", \"2x faster\", \"no overhead\", \"zero errors\"
  virtual users     stages of k6 that a comment calls requests per second

Levels:
  impossible        no measurement gives these figures together
  contradicted      the document's words or limits do not agree with its own figures
  cannot tell       the figures may be true; what is given does not carry them

Figures that rounding, another unit or another reading of a heading could explain are not accused. That nothing is found does not make a figure true.

Exit codes: 0 nothing is impossible or contradicted, 1 something is, 2 wrong usage or a file without figures.";

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Files to audit, at most 8 MiB each; `-` is stdin
    #[arg(value_name = "FILE", required_unless_present = "claims", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// Figures of one measurement, like `conns=100 rps=21989 mean=4.59ms` (repeatable)
    #[arg(long = "claim", value_name = "FIGURES")]
    claims: Vec<String>,
    /// What a heading means that is not known, like `Antwortzeit=mean:ms`; `HEADING=` leaves it out
    /// (repeatable)
    #[arg(long = "map", value_name = "HEADING=MEANING", value_parser = parse_mapping)]
    map: Vec<Mapping>,
    /// Print how each table and heading was understood, and what was not read
    #[arg(long)]
    understood: bool,
    /// Exit with 1 also for what is undecided
    #[arg(long)]
    strict: bool,
    /// Write the findings as JSON; `-` is stdout, without the text
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<PathBuf>,
}

/// Audits all files before anything is printed or written.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let mut files = Vec::new();
    let vocabulary = Vocabulary::new(flags.map.clone());
    for path in &flags.files {
        files.push(of_file(path, &vocabulary)?);
    }
    check_map(&flags.map, &files)?;
    for claim in &flags.claims {
        files.push(audit_claim(claim).map_err(|error| UsageError(error.to_string()))?);
    }
    let found = files.iter().any(|report| report.has_findings(flags.strict));
    let to_stdout = flags.json.as_deref() == Some(Path::new("-"));
    if !to_stdout {
        let texts: Vec<String> = files.iter().map(|report| report.text(flags.understood)).collect();
        console::print(&texts.join("\n"))?;
    }
    if let Some(path) = &flags.json {
        let json = serde_json::to_string_pretty(&Audit { schema: SCHEMA, files })? + "\n";
        if to_stdout {
            console::print(&json)?;
        } else {
            fs::write(path, json).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(if found { Exit::Fail } else { Exit::Pass })
}

/// An explanation of a heading that no file has is a slip.
fn check_map(map: &[Mapping], files: &[Report]) -> Result<(), UsageError> {
    let used: Vec<_> = files.iter().flat_map(|report| &report.mapped).collect();
    let unused = map.iter().find(|entry| !used.iter().any(|heading| *heading == entry.heading()));
    let Some(entry) = unused else { return Ok(()) };
    let unknown = files.iter().flat_map(|report| &report.tables).flat_map(|table| &table.not_read);
    let unknown: Vec<&str> = unknown.map(String::as_str).take(10).collect();
    let others = if unknown.is_empty() {
        "every heading is known".to_owned()
    } else {
        format!("not understood are: {}", unknown.join(", "))
    };
    Err(UsageError(format!("--map: no table has the heading `{}`; {others}", entry.heading())))
}

fn parse_mapping(text: &str) -> Result<Mapping, String> {
    Mapping::parse(text).map_err(|error| error.to_string())
}

fn of_file(path: &Path, vocabulary: &Vocabulary) -> Result<Report> {
    let name = path.display();
    let bytes = read(path).map_err(|error| UsageError(format!("{name}: {error}")))?;
    let report = audit_with(&path.to_string_lossy(), &bytes, vocabulary);
    Ok(report.map_err(|error: AuditError| UsageError(format!("{name}: {error}")))?)
}

/// At most one byte more than is allowed: what is larger is refused, and not held.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let most = u64::try_from(LARGEST_FILE).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    } else {
        plimsoll_input::open(path)?.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
