//! `plimsoll completions`: prints the completion script of a shell.

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Args, Command, CommandFactory as _};
use clap_complete::{Shell, generate};
use plimsoll_profile::builtin_names;

use super::Cli;
use crate::console;
use crate::exit::Exit;

const AFTER: &str = "\
Examples:
  source <(plimsoll completions bash)
  plimsoll completions zsh > \"${fpath[1]}/_plimsoll\"
  plimsoll completions fish > ~/.config/fish/completions/plimsoll.fish

Where a profile is expected, the built-in ones are offered beside files.";

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Shell to print completions for
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let mut script = Vec::new();
    let (mut command, mut found) = (Cli::command(), Found::default());
    offer_profiles(&mut command, "", &mut found);
    generate(flags.shell, &mut command, "plimsoll", &mut script);
    let script = String::from_utf8(script)?;
    let names = builtin_names().collect::<Vec<_>>().join(" ");
    console::print(&match flags.shell {
        Shell::Bash => in_bash(&script, &found),
        Shell::Zsh => in_zsh(&script, &names, &found),
        Shell::Fish => in_fish(&script, &names, &found),
        _ => script,
    })?;
    Ok(Exit::Pass)
}

/// The positional arguments that are files or names of built-in profiles.
const PROFILES: [&str; 2] = ["profile", "profiles"];

/// Makes the built-in profiles possible values of every argument that takes a profile. `found`
/// receives the commands that have one, as they are typed, and the names of hidden commands.
fn offer_profiles(command: &mut Command, path: &str, found: &mut Found) {
    let id = command
        .get_arguments()
        .find(|arg: &&Arg| arg.is_positional() && PROFILES.iter().any(|id| arg.get_id() == id))
        .map(|arg| arg.get_id().clone());
    if let Some(id) = id {
        found.takers.push(path.trim().to_owned());
        let names = PossibleValuesParser::new(builtin_names());
        let own = std::mem::take(command);
        *command = own.mut_arg(id, |arg| arg.value_parser(names));
    }
    for command in command.get_subcommands_mut() {
        let name = command.get_name().to_owned();
        if command.is_hide_set() {
            found.hidden.push(name);
        } else {
            offer_profiles(command, &format!("{path} {name}"), found);
        }
    }
}

/// What the scripts must know of the commands.
#[derive(Default)]
struct Found {
    takers: Vec<String>,
    hidden: Vec<String>,
}

/// Where a profile is expected, offers files too, and flags only after `-`.
fn in_bash(script: &str, found: &Found) -> String {
    // The second word of a command of one word may be anything.
    let patterns = found
        .takers
        .iter()
        .map(
            |path: &String| {
                if path.contains(' ') { format!("\"{path}\"") } else { format!("\"{path} \"*") }
            },
        )
        .collect::<Vec<_>>()
        .join("|");
    let wrapper = format!(
        r#"
_plimsoll_and_files() {{
    _plimsoll "$@"
    local cur="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" word words=()
    [[ ${{cur}} == -* || ${{previous}} == -[!q]* && ${{previous}} != --quiet ]] && return 0
    case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}" in
        {patterns}) ;;
        *) return 0 ;;
    esac
    for word in "${{COMPREPLY[@]}}"; do
        [[ ${{word}} == -* ]] || words+=("${{word}}")
    done
    compopt -o filenames 2>/dev/null
    mapfile -t -O "${{#words[@]}}" words < <(compgen -f -- "${{cur}}")
    COMPREPLY=("${{words[@]}}")
    return 0
}}
"#
    );
    let script: Vec<_> = script
        .lines()
        .map(|line: &str| {
            let offered = line.trim_start().starts_with("opts=");
            let hidden = found.hidden.iter().filter(|_| offered);
            hidden.fold(line.to_owned(), |line, name| line.replace(&format!(" {name} "), " "))
        })
        .collect();
    let script = script.join("\n") + "\n";
    let (functions, registered) = script.rsplit_once("\nif [[").unwrap_or((&script, ""));
    let registered = registered.replace("-F _plimsoll ", "-F _plimsoll_and_files ");
    format!("{functions}{wrapper}\nif [[{registered}")
}

/// Replaces the list of profiles by a function that offers files beside them.
fn in_zsh(script: &str, names: &str, found: &Found) -> String {
    let function = format!(
        r#"_plimsoll_profiles() {{
    _alternative "profiles:built-in profile:({names})" "files:file:_files"
}}

"#
    );
    let script = script.replace(&format!(":({names})'"), ":_plimsoll_profiles'");
    let hidden: Vec<_> = found.hidden.iter().map(|name| format!("'{name}:")).collect();
    let mut script: Vec<_> = script.lines().collect();
    script.retain(|line| !hidden.iter().any(|name| line.trim_start().starts_with(name)));
    let script = script.join("\n") + "\n";
    let (before, after) = script.split_once("(( $+functions[").unwrap_or((&script, ""));
    format!("{before}{function}(( $+functions[{after}")
}

/// Adds lines for arguments that are no options, of which the generated script has none. Files are
/// offered anyway.
fn in_fish(script: &str, names: &str, found: &Found) -> String {
    let hidden: Vec<_> = found.hidden.iter().map(|name| format!("-f -a \"{name}\"")).collect();
    let mut script: Vec<_> = script.lines().collect();
    script.retain(|line| !hidden.iter().any(|name| line.contains(name)));
    let mut lines: Vec<_> = script.into_iter().map(str::to_owned).collect();
    for path in &found.takers {
        let seen: Vec<_> =
            path.split(' ').map(|word| format!("__fish_seen_subcommand_from {word}")).collect();
        let condition = seen.join("; and ");
        lines.push(format!(
            "complete -c plimsoll -n \"{condition}\" -a \"{names}\" -d 'built-in profile'"
        ));
    }
    lines.join("\n") + "\n"
}
