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
    let (mut command, mut takers) = (Cli::command(), Vec::new());
    offer_profiles(&mut command, &mut takers);
    generate(flags.shell, &mut command, "plimsoll", &mut script);
    let script = String::from_utf8(script)?;
    let names = builtin_names().collect::<Vec<_>>().join(" ");
    console::print(&match flags.shell {
        Shell::Bash => in_bash(&script, &names),
        Shell::Zsh => in_zsh(&script, &names),
        Shell::Fish => in_fish(&script, &names, &takers),
        _ => script,
    })?;
    Ok(Exit::Pass)
}

/// The positional arguments that are files or names of built-in profiles.
const PROFILES: [&str; 2] = ["profile", "profiles"];

/// Makes the built-in profiles possible values of every argument that takes a profile. `takers`
/// receives the commands that have one.
fn offer_profiles(command: &mut Command, takers: &mut Vec<String>) {
    let takes = |arg: &&Arg| arg.is_positional() && PROFILES.iter().any(|id| arg.get_id() == id);
    let id = command.get_arguments().find(takes).map(|arg| arg.get_id().clone());
    if let Some(id) = id {
        takers.push(command.get_name().to_owned());
        let names = PossibleValuesParser::new(builtin_names());
        let own = std::mem::take(command);
        *command = own.mut_arg(id, |arg| arg.value_parser(names));
    }
    command.get_subcommands_mut().for_each(|command| offer_profiles(command, takers));
}

/// Where the generated function offers profiles, offers files too, and flags only after `-`.
fn in_bash(script: &str, names: &str) -> String {
    let wrapper = format!(
        r#"
_plimsoll_and_files() {{
    _plimsoll "$@"
    local cur="${{COMP_WORDS[COMP_CWORD]}}" word words=() profiles=" {names} " found=""
    [[ ${{cur}} == -* ]] && return 0
    for word in "${{COMPREPLY[@]}}"; do
        [[ ${{word}} == -* ]] || words+=("${{word}}")
        [[ ${{profiles}} == *" ${{word}} "* ]] && found=yes
    done
    if [[ ${{found}} ]]; then
        compopt -o filenames 2>/dev/null
        mapfile -t -O "${{#words[@]}}" words < <(compgen -f -- "${{cur}}")
        COMPREPLY=("${{words[@]}}")
    fi
    return 0
}}
"#
    );
    let (functions, registered) = script.rsplit_once("\nif [[").unwrap_or((script, ""));
    let registered = registered.replace("-F _plimsoll ", "-F _plimsoll_and_files ");
    format!("{functions}{wrapper}\nif [[{registered}")
}

/// Replaces the list of profiles by a function that offers files beside them.
fn in_zsh(script: &str, names: &str) -> String {
    let function = format!(
        r#"_plimsoll_profiles() {{
    _alternative "profiles:built-in profile:({names})" "files:file:_files"
}}

"#
    );
    let script = script.replace(&format!(":({names})'"), ":_plimsoll_profiles'");
    let (before, after) = script.split_once("(( $+functions[").unwrap_or((&script, ""));
    format!("{before}{function}(( $+functions[{after}")
}

/// Adds lines for arguments that are no options, of which the generated script has none. Files are
/// offered anyway.
fn in_fish(script: &str, names: &str, takers: &[String]) -> String {
    let line = |command: &String| {
        format!(
            "complete -c plimsoll -n \"__fish_seen_subcommand_from {command}\" -a \"{names}\" -d 'built-in profile'\n"
        )
    };
    script.to_owned() + &takers.iter().map(line).collect::<String>()
}
