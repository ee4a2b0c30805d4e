//! The command line itself.

use std::process::Stdio;

use crate::bench::{Bench, FAST, command};

#[test]
fn help_and_version_are_results_and_mistakes_are_not() {
    let bench = Bench::with(FAST);
    for args in [&["--help"][..], &["help", "run"], &["run", "--help"], &["-V"]] {
        let ran = bench.plimsoll(args).expect(0);
        assert!(!ran.stdout.is_empty() && ran.stderr.is_empty(), "{args:?}");
    }
    for args in [&[][..], &["rum"], &["run"], &["run", "x", "--nonsense"], &["profile"]] {
        let ran = bench.plimsoll(args).expect(2);
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{args:?}");
    }
    let version = bench.plimsoll(&["--version"]).expect(0).stdout;
    assert_eq!(version, format!("plimsoll {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_flag_that_makes_no_sense_is_told_by_its_name() {
    let bench = Bench::with(FAST);
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
        let ran = bench.run(&[&["minimal"], args].concat()).expect(2);
        assert!(ran.stderr.contains(part), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(bench.runs().len(), 0);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let bench = Bench::with(FAST);
    for args in [&["profile", "schema"][..], &["profile", "list"], &["completions", "bash"]] {
        let mut command = command(bench.folder.path(), args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(output.stderr.is_empty(), "{args:?}");
    }
}
