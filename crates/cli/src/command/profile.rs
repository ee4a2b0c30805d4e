//! `plimsoll profile`: check, show, write and list profiles.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand, ValueHint};
use plimsoll_engine::Run;
use plimsoll_profile::{
    Environment, Overrides, Plan, Profile, Purpose, builtin, builtin_names, load, schema,
};

use crate::console;
use crate::exit::{Exit, Usage, told};
use crate::flags::ProfileFlags;

const AFTER_CHECK: &str = "\
A key that is still a placeholder is accepted here. Exit code 2 if anything is wrong.";

const AFTER_SHOW: &str = "\
Example:
  plimsoll profile show realistic --stages 100:60s

Prints the plan that `plimsoll run` would carry out with the same flags: every default visible, credentials hidden.";

const AFTER_INIT: &str = "\
Examples:
  plimsoll profile init                          plimsoll.yaml, from the profile `minimal`
  plimsoll profile init --kind realistic my.yaml";

#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// Check profiles; all problems are told at once
    #[command(after_help = AFTER_CHECK)]
    Check {
        /// Files, or names of built-in profiles
        #[arg(required = true, value_hint = ValueHint::FilePath)]
        profiles: Vec<String>,
    },
    /// Print the plan that a profile and flags come to
    #[command(after_help = AFTER_SHOW)]
    Show(Box<Show>),
    /// Write a profile to start from
    #[command(after_help = AFTER_INIT)]
    Init {
        /// The built-in profile to copy
        #[arg(long, value_name = "NAME", default_value = "minimal")]
        kind: String,
        /// Where to
        #[arg(default_value = "plimsoll.yaml", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// Print the JSON Schema of profiles, for editors
    Schema,
    /// List the built-in profiles
    List,
}

#[derive(Args, Debug)]
pub(crate) struct Show {
    /// A file, or the name of a built-in profile
    #[arg(value_hint = ValueHint::FilePath)]
    profile: String,
    #[command(flatten)]
    intent: ProfileFlags,
}

/// Does what is asked.
pub(crate) fn run(what: &What) -> Result<Exit> {
    match what {
        What::Check { profiles } => return check_all(profiles),
        What::Show(show) => {
            let overrides = show.intent.overrides();
            console::print(&resolve(&show.profile, &overrides)?.show())?;
        }
        What::Init { kind, file } => init(kind, file)?,
        What::Schema => console::print_line(&serde_json::to_string_pretty(&schema())?)?,
        What::List => list()?,
    }
    Ok(Exit::Pass)
}

fn resolve(profile: &str, overrides: &Overrides) -> Result<Plan> {
    Ok(load(&Profile::open(profile)?, &Environment::from_process(), overrides, Purpose::Check)?)
}

fn check_all(profiles: &[String]) -> Result<Exit> {
    let mut exit = Exit::Pass;
    for profile in profiles {
        match check(profile) {
            Ok(()) => console::print_line(&format!("{profile}: ok"))?,
            Err(error) => {
                console::complain("error", &told(&error));
                exit = Exit::Usage;
            }
        }
    }
    Ok(exit)
}

/// Resolves the profile, and prepares it as for a run: traces and tokenizers are read.
fn check(profile: &str) -> Result<()> {
    let plan = resolve(profile, &Overrides::default())?;
    plan.notes.iter().for_each(|note| console::say(&format!("note: {note}")));
    Run::prepare(plan).with_context(|| profile.to_owned())?;
    Ok(())
}

fn init(kind: &str, path: &Path) -> Result<()> {
    let text = builtin(kind).ok_or_else(|| {
        let names: Vec<_> = builtin_names().collect();
        Usage(format!("there is no built-in profile `{kind}`; choose one of {}", names.join(", ")))
    })?;
    let written = File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let cause =
                format!("{} exists already; name another file, or remove it", path.display());
            return Err(Usage(cause).into());
        }
        done => done.with_context(|| {
            format!("cannot write {}; name a file in a folder that exists", path.display())
        })?,
    }
    let path = path.display();
    console::print_line(&format!(
        "{path} written. Set its target, key and model, then:\n  plimsoll profile check {path}\n  plimsoll run {path}"
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

/// Characters that fit beside the longest name.
const HEADLINE: usize = 72;

/// What the comment at the top of a profile says: its first sentence, or what of it stands before a
/// colon if it is long.
fn headline(text: &str) -> String {
    let comment: Vec<_> =
        text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
    let comment = comment.join(" ");
    let sentence = comment.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let long = sentence.chars().count() > HEADLINE;
    let short = sentence.split(": ").next().filter(|_| long);
    short.unwrap_or(sentence).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headline_describes_a_profile() {
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
