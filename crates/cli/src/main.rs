//! Plimsoll: the calibrated load-testing instrument for LLM and API gateways.
//!
//! This crate holds flags, wiring, signals and exit codes. `plimsoll-profile` defines profiles,
//! `plimsoll-engine` makes the load, `plimsoll-metrics` computes the numbers, and `plimsoll-report`
//! formats them.
//!
//! ```text
//! command::Cli -> command::* -> session (run_dir, probe, load, summary) -> exit
//! ```

mod command;
mod console;
mod doctor;
mod environment;
mod exit;
mod flags;
mod foreign_flags;
mod processes;
mod progress;
mod run_result;
mod session;

use std::process::ExitCode;

use command::Command;
use foreign_flags::Reading;

/// The C library's allocator keeps the memory of a connection peak; this allocator releases it.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Ends this process when its caller exits, which closes the caller's end of the pipe.
fn follow_caller() {
    if std::env::var_os("PLIMSOLL_FOLLOW_CALLER").is_some() {
        std::thread::spawn(|| {
            // The caller never writes to the pipe.
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            exit::exit_now();
        });
    }
}

fn main() -> ExitCode {
    follow_caller();
    command::completions::answer_shell();
    let arguments: Vec<_> = std::env::args_os().collect();
    let arguments = match foreign_flags::read(&arguments, command::flags_of) {
        Reading::Refused(hint) => return exit::with_hint(&hint),
        Reading::Ours(words, notes) => {
            if !notes.is_empty() {
                console::eprint_labelled("note", &notes.join("; "));
            }
            words
        }
    };
    let command = match command::parse(&arguments) {
        Ok(cli) => cli.command,
        Err(error) => return exit::from_parse_error(error),
    };
    exit::code(match &command {
        Command::Demo(flags) => command::demo::run(flags),
        Command::Run(flags) => command::run::run(flags),
        Command::Http(flags) => command::http::run(flags),
        Command::Llm(flags) => command::llm::run(flags),
        Command::Versus(flags) => command::versus::run(flags),
        Command::Knee(flags) => command::knee::run(flags),
        Command::Mock(flags) => command::mock::run(flags),
        Command::Gateway(flags) => command::gateway::run(flags),
        Command::Suite(command) => command::suite::run(command),
        Command::Profile(command) => command::profile::run(command),
        Command::Compare(flags) => command::compare::run(flags),
        Command::Merge(flags) => command::merge::run(flags),
        Command::Import(flags) => command::import::run(flags),
        Command::Export(flags) => command::import::run_export(flags),
        Command::Why(flags) => command::why::run(flags),
        Command::Join(flags) => command::join::run(flags),
        Command::Report(flags) => command::report::run(flags),
        Command::Rule(flags) => command::rule::run(flags),
        Command::Fleet(flags) => command::fleet::run(flags),
        Command::Doctor => doctor::run_doctor(),
        Command::Calibrate(flags) => command::calibrate::run(flags),
        Command::Completions(flags) => command::completions::run(flags),
        Command::Man(flags) => command::completions::run_man(flags),
    })
}
