//! `plimsoll profile`: checks, shows, creates and lists profiles.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use plimsoll_engine::Run;
use plimsoll_profile::{
    EnvVars, Overrides, Profile, Purpose, builtin, builtin_names, load, schema, show,
};

use super::completions::profiles as builtin_or_file;
use crate::console;
use crate::exit::{Exit, UsageError, error_chain};
use crate::flags::{ProfileFlags, TargetFlags};

const AFTER_CHECK: &str = include_str!("profile-check.txt").trim_ascii_end();

const AFTER_SHOW: &str = include_str!("profile-show.txt").trim_ascii_end();

const AFTER_INIT: &str = include_str!("profile-init.txt").trim_ascii_end();

#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// Check profiles and print all problems at once
    #[command(after_help = AFTER_CHECK)]
    Check {
        /// Profile files, or names of built-in profiles
        #[arg(required = true, value_hint = ValueHint::FilePath)]
        #[arg(add = ArgValueCompleter::new(builtin_or_file))]
        profiles: Vec<String>,
    },
    /// Print the profile that results from a profile and flags
    #[command(after_help = AFTER_SHOW)]
    Show(Box<ShowFlags>),
    /// Create a profile from a built-in one
    #[command(after_help = AFTER_INIT)]
    Init {
        /// Built-in profile to copy (`plimsoll profile list`)
        #[arg(long, value_name = "NAME", default_value = "minimal")]
        kind: String,
        /// File to create; an existing one is not overwritten
        #[arg(default_value = "plimsoll.yaml", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// Print the JSON Schema of profiles, for editors
    Schema,
    /// List the built-in profiles
    List,
}

#[derive(Args, Debug)]
pub(crate) struct ShowFlags {
    /// Profile file, or name of a built-in profile
    #[arg(value_hint = ValueHint::FilePath, add = ArgValueCompleter::new(builtin_or_file))]
    profile: String,
    #[command(flatten)]
    target: TargetFlags,
    #[command(flatten)]
    settings: ProfileFlags,
}

/// Runs the subcommand.
pub(crate) fn run(command: &ProfileCommand) -> Result<Exit> {
    match command {
        ProfileCommand::Check { profiles } => return check_all(profiles),
        ProfileCommand::Show(flags) => {
            let overrides = flags.target.add_to(flags.settings.overrides());
            let profile = Profile::open(&flags.profile)?;
            console::print(&show(&profile, &EnvVars::from_process(), &overrides)?)?;
        }
        ProfileCommand::Init { kind, file } => init(kind, file)?,
        ProfileCommand::Schema => console::print_line(&serde_json::to_string_pretty(&schema())?)?,
        ProfileCommand::List => list()?,
    }
    Ok(Exit::Pass)
}

fn check_all(profiles: &[String]) -> Result<Exit> {
    let mut exit = Exit::Pass;
    for profile in profiles {
        match check(profile) {
            Ok(()) => console::print_line(&format!("{profile}: ok"))?,
            Err(error) => {
                console::eprint_labelled("error", &error_chain(&error));
                exit = Exit::Usage;
            }
        }
    }
    Ok(exit)
}

/// Resolves the profile and prepares it as for a run, so that traces and tokenizers are read.
fn check(profile: &str) -> Result<()> {
    let variables = EnvVars::from_process();
    let plan = load(&Profile::open(profile)?, &variables, &Overrides::default(), Purpose::Check)?;
    super::versus::thresholds(&plan)?;
    plan.notes.iter().for_each(|note| console::eprint_line(&format!("note: {note}")));
    plan.unsent.iter().for_each(|parts| console::eprint_line(&format!("not sent: {parts}")));
    Run::prepare(plan).with_context(|| profile.to_owned())?;
    Ok(())
}

fn init(kind: &str, path: &Path) -> Result<()> {
    let text = builtin(kind).ok_or_else(|| {
        let names: Vec<_> = builtin_names().collect();
        UsageError(format!(
            "no built-in profile is named `{kind}`; choose one of {}",
            names.join(", ")
        ))
    })?;
    let written = File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let cause =
                format!("{} exists already; name another file, or remove this one", path.display());
            return Err(UsageError(cause).into());
        }
        result => result.with_context(|| {
            format!("cannot write {}; name a file in a folder that exists", path.display())
        })?,
    }
    let path = path.display();
    console::print_line(&format!(
        "created {path}. Set its target, key and model, then:\n  plimsoll profile check {path}\n  plimsoll run {path}"
    ))?;
    Ok(())
}

fn list() -> Result<()> {
    let names: Vec<_> = builtin_names().collect();
    let width = names.iter().map(|name| name.len()).max().unwrap_or(0);
    for name in names {
        let about = builtin(name).map(headline).unwrap_or_default();
        console::print_line(&format!("{name:width$}  {about}"))?;
    }
    Ok(())
}

/// The most characters of a description, so that it fits beside the longest name.
const MAX_HEADLINE: usize = 72;

/// The first sentence of the comment at the top of a profile; if it is too long, only the part
/// before its first colon.
fn headline(text: &str) -> String {
    let comment: Vec<_> =
        text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
    let comment = comment.join(" ");
    let sentence = comment.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let long = sentence.chars().count() > MAX_HEADLINE;
    let short = sentence.split(": ").next().filter(|_| long);
    short.unwrap_or(sentence).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headline_is_the_first_sentence_of_the_comment() {
        for (text, sentence) in [
            ("# One two\n# three. Four.\nname: x\n# no", "One two three"),
            ("# One: two. Three\n", "One: two"),
            (
                "# One: two, and so on, and on, until it is more than fits onto a line of a terminal.",
                "One",
            ),
            ("# Only this.\nx: 1", "Only this"),
            ("name: x", ""),
        ] {
            assert_eq!(headline(text), sentence);
        }
    }

    #[test]
    fn every_built_in_profile_has_a_description() {
        for name in builtin_names() {
            assert!(!headline(builtin(name).unwrap()).is_empty(), "{name}");
        }
    }
}
