//! Flags that set keys of the profile. `keys.tsv` has a row for each; the arguments, their help and
//! the overrides of the profile follow from it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, ValueHint};
use plimsoll_metrics::Limit;
use plimsoll_plan::{ConnectTo, ProxyUrl};
use plimsoll_profile::Overrides;
use serde_json::{Map, Value};

use super::{parse_share, parse_time, with_scheme};

/// The given flags of the commands at this position of [`COMMANDS`].
#[derive(Clone, Debug)]
pub(crate) struct KeyFlags<const COMMANDS_AT: usize>(Vec<(&'static Row, String)>);

/// Names in the first column of the table.
const COMMANDS: [&str; 7] = ["profile", "target", "http", "llm", "versus", "run", "labels"];

pub(crate) type ProfileFlags = KeyFlags<0>;
pub(crate) type TargetFlags = KeyFlags<1>;
pub(crate) type HttpFlags = KeyFlags<2>;
pub(crate) type LlmFlags = KeyFlags<3>;
pub(crate) type VersusFlags = KeyFlags<4>;
pub(crate) type ThresholdFlags = KeyFlags<5>;
pub(crate) type LabelFlags = KeyFlags<6>;

/// A row of the table.
#[derive(Debug)]
struct Row {
    commands: &'static str,
    heading: &'static str,
    flag: &'static str,
    short: Option<char>,
    value: &'static str,
    key: &'static str,
    kind: &'static str,
    rule: &'static str,
    help: &'static str,
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let lines = include_str!("keys.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.map(Row::read).collect()
});

fn rows_of(at: usize) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(move |row| row.commands.split(',').any(|name| name == COMMANDS[at]))
}

impl Row {
    fn read(line: &'static str) -> Self {
        let mut columns = line.split('\t');
        let [commands, heading, flag, short, value, key, kind, rule, help] =
            std::array::from_fn(|_| columns.next().unwrap_or_default());
        let short = short.chars().next();
        Self { commands, heading, flag, short, value, key, kind, rule, help }
    }

    fn argument(&self) -> Arg {
        let arg = Arg::new(self.flag).long(self.flag).short(self.short).help(self.help);
        let arg = arg.help_heading(self.heading);
        let arg = match self.rule.split_once(' ') {
            Some(("default", text)) => arg.default_value(text),
            Some(("requires", other)) => arg.requires(other),
            Some((_, other)) => arg.conflicts_with(other),
            None => arg,
        };
        if self.kind.starts_with('=') {
            return arg.action(ArgAction::SetTrue);
        }
        let repeats = matches!(self.kind, "header" | "set" | "place" | "threshold" | "label");
        let hint = match self.value {
            "FILE" | "PATH" => ValueHint::FilePath,
            "URL" => ValueHint::Url,
            _ => ValueHint::Unknown,
        };
        arg.action(if repeats { ArgAction::Append } else { ArgAction::Set })
            .value_name(self.value)
            .value_hint(hint)
            .value_parser(parser(self.kind))
    }

    fn values(&self, matches: &ArgMatches) -> Vec<String> {
        match self.kind.strip_prefix('=') {
            Some(text) if matches.get_flag(self.flag) => vec![text.to_owned()],
            Some(_) => Vec::new(),
            None => matches.get_many(self.flag).into_iter().flatten().cloned().collect(),
        }
    }
}

impl Row {
    /// The keys that a value sets, and their texts.
    fn pairs(&self, value: &str) -> Vec<(String, String)> {
        let keys = self.key.split(' ').map(str::to_owned);
        match (self.kind, value.split_once('=')) {
            ("prices", _) => keys.zip(value.split(',').map(str::to_owned)).collect(),
            ("members", _) => {
                members(value).map(|(name, text)| (format!("{}{name}", self.key), text)).collect()
            }
            ("label", Some((name, text))) => vec![(format!("{}{name}", self.key), text.to_owned())],
            _ => keys.map(|key| (key, value.to_owned())).collect(),
        }
    }
}

/// Reads a value of this kind, and gives it as the profile has it.
fn parser(kind: &'static str) -> ValueParser {
    if kind.contains('|') {
        return PossibleValuesParser::new(kind.split('|')).into();
    }
    ValueParser::new(match kind {
        "count" => |text: &str| {
            let count = text.parse().ok().filter(|count: &u64| *count > 0);
            count
                .map(|_| text.to_owned())
                .ok_or_else(|| "write a whole number, 1 or more".to_owned())
        },
        "share" => |text: &str| parse_share(text).map(|share| share.to_string()),
        "money" => parse_money,
        "prices" => parse_prices,
        "place" => |text: &str| {
            text.parse().map(|_: ConnectTo| text.to_owned()).map_err(|error| error.to_string())
        },
        "proxy" => |text: &str| {
            text.parse().map(|_: ProxyUrl| text.to_owned()).map_err(|error| format!("it {error}"))
        },
        "url" => |text: &str| Ok(with_scheme(text)),
        "text-or-file" => text_or_file,
        "members" => |text: &str| {
            let is_object = serde_json::from_str::<Map<String, Value>>(text).is_ok();
            is_object
                .then(|| text.to_owned())
                .ok_or_else(|| "write a JSON object, like {\"top_k\": 5}".to_owned())
        },
        "time" => |text: &str| parse_time(text).map(|time| time.to_string()),
        "threshold" => parse_threshold,
        "label" => parse_label,
        _ => |text: &str| Ok(text.to_owned()),
    } as fn(&str) -> Result<String, String>)
}

impl<const AT: usize> Args for KeyFlags<AT> {
    fn augment_args(command: Command) -> Command {
        rows_of(AT).fold(command, |command, row| command.arg(row.argument()))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const AT: usize> FromArgMatches for KeyFlags<AT> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = rows_of(AT)
            .flat_map(|row| row.values(matches).into_iter().map(move |value| (row, value)));
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<const AT: usize> KeyFlags<AT> {
    /// The value of a flag, if it was given or has a default.
    pub(crate) fn get(&self, flag: &str) -> Option<&str> {
        self.0.iter().find(|(row, _)| row.flag == flag).map(|(_, value)| value.as_str())
    }

    /// The overrides of these flags alone.
    pub(crate) fn overrides(&self) -> Overrides {
        self.add_to(Overrides::default())
    }

    /// The overrides, combined with these flags.
    pub(crate) fn add_to(&self, mut overrides: Overrides) -> Overrides {
        let mut lists: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
        for (row, value) in &self.0 {
            let (key, value) = (row.key, value.as_str());
            match row.kind {
                "header" => overrides.headers.push(value.to_owned()),
                "set" => overrides.sets.push(value.to_owned()),
                "run-id" => overrides.run_id = Some(value.to_owned()),
                "shard" => overrides.shard = Some(value.to_owned()),
                "place" => lists.entry((row.flag, key.to_owned())).or_default().push(value),
                "threshold" => {
                    let (metric, bound) = value.split_once('\t').unwrap_or((value, ""));
                    lists.entry((row.flag, format!("{key}{metric}"))).or_default().push(bound);
                }
                _ => {
                    let pairs = row.pairs(value).into_iter();
                    overrides =
                        pairs.fold(overrides, |all, (key, text)| all.with(row.flag, &key, text));
                }
            }
        }
        lists.into_iter().fold(overrides, |overrides, ((flag, key), values)| {
            overrides.with(flag, &key, serde_json::json!(values).to_string())
        })
    }
}

/// Reads a limit, and gives its two parts with a tab between them, as `thresholds` of a profile has
/// them.
fn parse_threshold(text: &str) -> Result<String, String> {
    let limit = Limit::read(text.trim()).map_err(|error| error.to_string())?;
    Ok(format!("{}\t{}", limit.metric(), limit.expression()))
}

/// The members of a JSON object, each with its value as JSON.
fn members(text: &str) -> impl Iterator<Item = (String, String)> {
    let object: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    object.into_iter().map(|(name, value)| (name, value.to_string()))
}

/// Reads a text, or the file behind an `@`.
fn text_or_file(text: &str) -> Result<String, String> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    plimsoll_input::read_text(path.as_ref()).map_err(|error| format!("cannot read {path}: {error}"))
}

/// Reads `IN,OUT`.
fn parse_prices(text: &str) -> Result<String, String> {
    let (input, output) = text
        .split_once(',')
        .ok_or_else(|| "write two prices, of input and of output, like 0.15,0.6".to_owned())?;
    Ok(format!("{},{}", parse_money(input.trim())?, parse_money(output.trim())?))
}

/// Reads an amount of money: a number, 0 or more.
fn parse_money(text: &str) -> Result<String, String> {
    let amount = text.trim_start_matches(['$', '€']).parse().ok();
    let amount = amount.filter(|amount: &f64| amount.is_finite() && *amount >= 0.0);
    let amount = amount.ok_or_else(|| "write a number, 0 or more, like 2.50".to_owned())?;
    Ok(amount.to_string())
}

fn parse_label(text: &str) -> Result<String, String> {
    let name = text.split_once('=').map(|(name, _)| name).filter(|name| !name.is_empty());
    name.ok_or("write NAME=VALUE, like environment=staging")?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_a_metric_and_a_bound_in_every_notation() {
        for (text, expected) in [
            ("response_time: p(95)<20ms", "response_time\tp(95)<20ms"),
            ("response_time p(95)<20ms", "response_time\tp(95)<20ms"),
            ("ttft.p99_9<1s", "ttft\tp(99.9)<1s"),
            ("ttft.p50 < 1s", "ttft\tp(50)<1s"),
            ("ttft{stage:@9:1s}.p50<1s", "ttft{stage:@9:1s}\tp(50)<1s"),
            ("error_rate<1%", "error_rate\t<1%"),
            ("ttft{scenario:chat}: p(50)<1s", "ttft{scenario:chat}\tp(50)<1s"),
        ] {
            assert_eq!(parse_threshold(text).unwrap(), expected, "{text}");
        }
        for (text, says) in [
            ("", "unknown metric"),
            ("ttft", "no comparison"),
            ("p95: <500ms", "the metric comes first"),
            (": p(95)<1s", "the metric comes first"),
            ("ttft{stage:a", "no comparison"),
            ("ttft: p(95)<5", "measured in time, not `5`"),
        ] {
            let error = parse_threshold(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    fn overrides_of<const AT: usize>(line: &str) -> Result<Overrides, Error> {
        let command = KeyFlags::<AT>::augment_args(Command::new("p").arg(Arg::new("http2")));
        let matches =
            command.try_get_matches_from(["p"].into_iter().chain(line.split_whitespace()))?;
        Ok(KeyFlags::<AT>::from_arg_matches(&matches)?.overrides())
    }

    #[test]
    fn flags_set_keys_of_the_profile() {
        for (line, key, text) in [
            ("--cert c --cert-key k", "tls.key_file", "k"),
            ("-k", "tls.insecure", "true"),
            ("--no-resumption", "tls.resumption", "false"),
            ("-n 5", "max_requests", "5"),
            ("--abort-on-errors 50%", "abort_on_error_rate", "0.5"),
            ("--budget-cost $2.50 --price 0.15,0.6", "budget.cost", "2.5"),
            ("--price 0.15,0.6", "budget.output_price", "0.6"),
            ("--connect-to a:1:b:2 --connect-to c:1:d:2", "connect_to", r#"["a:1:b:2","c:1:d:2"]"#),
            ("--stages w1:1s,2:5s", "stages", "w1:1s,2:5s"),
            // Variables are not expanded in flags, so they are not escaped.
            ("--unix-socket /run/$x.sock", "unix_socket", "/run/$x.sock"),
        ] {
            assert_eq!(overrides_of::<0>(line).unwrap().get(key), Some(text), "{line}");
        }
        for line in [
            "-n 0",
            "--cert-key k",
            "--budget-cost 2",
            "--price 1",
            "--proxy ftp://h",
            "--threshold a",
        ] {
            assert!(overrides_of::<0>(line).is_err(), "{line}");
        }
        let bounds = overrides_of::<5>("--threshold ttft.p50<1s --threshold ttft.p95<2s").unwrap();
        assert_eq!(bounds.get("thresholds.ttft"), Some(r#"["p(50)<1s","p(95)<2s"]"#));
        let label = overrides_of::<6>("--metric-label a=b=c").unwrap();
        assert_eq!(label.get("labels.a"), Some("b=c"));
    }

    #[test]
    fn every_row_has_its_columns_and_a_command() {
        for row in ROWS.iter() {
            assert!(row.commands.split(',').all(|name| COMMANDS.contains(&name)), "{row:?}");
            assert!(!row.help.is_empty() && !row.heading.is_empty(), "{row:?}");
        }
    }
}
