//! The command line: help, versions, wrong flags.

use std::process::Stdio;

use crate::support::{FAST, Fixture, command};

#[test]
fn help_goes_to_stdout_and_usage_errors_go_to_stderr() {
    let fixture = Fixture::with(FAST);
    for args in [&["--help"][..], &["help", "run"], &["run", "--help"], &["-V"]] {
        let output = fixture.plimsoll(args).expect(0);
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{args:?}");
    }
    for args in [&[][..], &["rum"], &["run"], &["run", "x", "--nonsense"], &["profile"]] {
        let output = fixture.plimsoll(args).expect(2);
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{args:?}");
    }
    let version = fixture.plimsoll(&["--version"]).expect(0).stdout;
    assert_eq!(version, format!("plimsoll {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn an_invalid_value_is_an_error_that_names_the_flag() {
    let fixture = Fixture::with(FAST);
    for (args, part) in [
        (&["--header", "nocolon"][..], "flag --header: headers: has no colon"),
        (&["--set", "turns"], "flag --set"),
        (&["--set", "turns=many"], "flag --set turns"),
        (&["--set", "tunrs=2"], "did you mean `turns`"),
        (&["--stages", "5"], "flag --stages"),
        (&["--protocol", "openai"], "flag --protocol"),
        (&["--seed", "x"], "flag --seed"),
        (&["--shard", "2/2"], "flag --shard"),
        (&["--ca-file", "absent.pem"], "flag --ca-file"),
        (&["--name", "a/b"], "name"),
        (&["--set", "target=ftp://x"], "target"),
    ] {
        let output = fixture.run(&[&["minimal"], args].concat()).expect(2);
        assert!(output.stderr.contains(part), "{args:?}: {}", output.stderr);
    }
    assert_eq!(fixture.runs().len(), 0);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let fixture = Fixture::with(FAST);
    for args in [&["profile", "schema"][..], &["profile", "list"], &["completions", "bash"]] {
        let mut command = command(fixture.folder.path(), args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(output.stderr.is_empty(), "{args:?}");
    }
}
