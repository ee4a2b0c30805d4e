//! The pages of `--help` and `--help-all` for commands that make load.

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command};

/// Columns of a line: commands, heading, flag, and the line of `--help`. Flags without one are in
/// `--help-all`.
const TABLE: &str = include_str!("help.tsv");

const COMMANDS: [&str; 5] = ["http", "llm", "run", "versus", "knee"];

/// The command line with both pages.
pub(super) fn shown(cli: Command) -> Command {
    COMMANDS
        .into_iter()
        .fold(cli, |cli, name| cli.mut_subcommand(name, |command| with_short_page(command, name)))
}

fn with_short_page(command: Command, name: &str) -> Command {
    let after = command.get_after_help().map(StyledStr::to_string).unwrap_or_default();
    let examples = after.split("\n\n").next().unwrap_or_default().to_owned();
    let help = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort);
    let all = Arg::new("help-all").long("help-all").action(ArgAction::HelpLong);
    command
        .disable_help_flag(true)
        .arg(help.help("Print this page"))
        .arg(all.help("Print all options, with explanations and exit codes"))
        .mut_args(|arg| with_line(arg, name))
        .after_help(examples)
        .after_long_help(after)
}

/// The argument with its line in the short page, or hidden there.
fn with_line(arg: Arg, command: &str) -> Arg {
    let Some(flag) = arg.get_long() else { return arg };
    let rows = TABLE.lines().enumerate().skip(1).filter_map(|(order, line)| {
        let mut columns = line.split('\t');
        let [commands, heading, flag, help] =
            std::array::from_fn(|_| columns.next().unwrap_or_default());
        commands.split(',').any(|known| known == command).then_some((order, heading, flag, help))
    });
    let Some((order, heading, _, help)) = rows.clone().find(|row| row.2 == flag) else {
        return arg.hide_short_help(true);
    };
    let arg = arg.help_heading(heading).display_order(order);
    if help.is_empty() {
        return arg.hide_short_help(true);
    }
    let whole = arg.get_long_help().or_else(|| arg.get_help()).cloned().unwrap_or_default();
    let takes_value = arg.get_action().takes_values();
    arg.help(help).long_help(whole).hide_possible_values(takes_value)
}
