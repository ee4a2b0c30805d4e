//! A page in the Prometheus text exposition format, version 0.0.4.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use crate::escape::escape_label;

/// The labels of a line, without the labels of the page.
pub type Labels<'a> = Vec<(&'static str, Cow<'a, str>)>;

/// Type of a metric family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Never falls while the process lives; its name ends with `_total`.
    Counter,
    /// May rise and fall.
    Gauge,
    /// Quantiles, a sum and a count.
    Summary,
    /// Counts up to fixed limits, which Prometheus can add up, a sum and a count.
    Histogram,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Summary => "summary",
            Self::Histogram => "histogram",
        }
    }
}

/// A page: families of lines, each under its head. The labels of the page are on every line.
#[derive(Clone, Debug, Default)]
pub struct Exposition {
    out: String,
    /// Labels of the page, each after a comma.
    common: String,
}

impl Exposition {
    /// An empty page with these labels on every line.
    pub fn new(labels: &BTreeMap<String, String>) -> Self {
        let mut common = String::new();
        for (key, value) in labels {
            // Writing to a String cannot fail.
            let _ = write!(common, ",{key}=\"{}\"", escape_label(value));
        }
        Self { out: String::new(), common }
    }

    /// Begins a family that the catalog defines.
    pub fn head(&mut self, name: &str, kind: Kind, help: &str) {
        self.write_head(name, kind.name(), help);
    }

    /// Begins a family of `families.tsv`.
    pub fn begin(&mut self, name: &str) {
        let mut rows = include_str!("families.tsv").lines();
        let row = rows.find_map(|row| row.strip_prefix(name)?.strip_prefix('\t')?.split_once('\t'));
        let (kind, help) = row.unwrap_or(("untyped", ""));
        self.write_head(name, kind, help);
    }

    fn write_head(&mut self, name: &str, kind: &str, help: &str) {
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        // Writing to a String cannot fail.
        let _ = write!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// A line of the present family.
    pub fn line(&mut self, name: &str, labels: &[(&str, Cow<'_, str>)], value: impl Display) {
        self.out.push_str(name);
        let mut separator = '{';
        for (key, text) in labels {
            let _ = write!(self.out, "{separator}{key}=\"{}\"", escape_label(text));
            separator = ',';
        }
        if separator == '{' && !self.common.is_empty() {
            let _ = write!(self.out, "{{{}", self.common.trim_start_matches(','));
        } else if separator == '{' {
            self.out.push(separator);
        } else {
            self.out.push_str(&self.common);
        }
        let _ = writeln!(self.out, "}} {value}");
    }

    /// A family of the catalog with a line for each of these.
    pub fn described<'a, V: Display>(
        &mut self,
        name: &str,
        kind: Kind,
        help: &str,
        lines: impl IntoIterator<Item = (Labels<'a>, V)>,
    ) {
        self.head(name, kind, help);
        lines.into_iter().for_each(|(labels, value)| self.line(name, &labels, value));
    }

    /// A family of `families.tsv` with a line for each of these.
    pub fn family<'a, V: Display>(
        &mut self,
        name: &str,
        lines: impl IntoIterator<Item = (Labels<'a>, V)>,
    ) {
        self.begin(name);
        lines.into_iter().for_each(|(labels, value)| self.line(name, &labels, value));
    }

    /// The same, but left out without a line.
    pub fn optional<'a, V: Display>(
        &mut self,
        name: &str,
        lines: impl Iterator<Item = (Labels<'a>, V)>,
    ) {
        let mut lines = lines.peekable();
        if lines.peek().is_some() {
            self.family(name, lines);
        }
    }

    /// A family of one line without labels of its own.
    pub fn single(&mut self, name: &str, value: impl Display) {
        self.family(name, [(Vec::new(), value)]);
    }

    /// The text.
    pub fn finish(self) -> String {
        self.out
    }
}
