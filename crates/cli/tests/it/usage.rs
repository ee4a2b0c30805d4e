//! The command line itself.

use std::process::Stdio;

use crate::support::{FAST, Fixture, command};

#[test]
fn help_and_version_are_results_and_mistakes_are_not() {
    let fixture = Fixture::with(FAST);
    for args in [&["--help"][..], &["help", "run"], &["run", "--help"], &["-V"]] {
        let ran = fixture.plimsoll(args).expect(0);
        assert!(!ran.stdout.is_empty() && ran.stderr.is_empty(), "{args:?}");
    }
    for args in [&[][..], &["rum"], &["run"], &["run", "x", "--nonsense"], &["profile"]] {
        let ran = fixture.plimsoll(args).expect(2);
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{args:?}");
    }
    let version = fixture.plimsoll(&["--version"]).expect(0).stdout;
    assert_eq!(version, format!("plimsoll {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_flag_that_makes_no_sense_is_told_by_its_name() {
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
        let ran = fixture.run(&[&["minimal"], args].concat()).expect(2);
        assert!(ran.stderr.contains(part), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(fixture.runs().len(), 0);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
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

#[test]
fn flags_of_earlier_versions_still_work_and_name_the_new_ones() {
    let fixture = Fixture::with(FAST);
    let target = fixture.target();
    let old = ["run", "minimal", "--target", &target, "--vk", "any", "--stages", "1:200ms"];
    let finished = fixture.plimsoll(&old).expect(0);
    assert!(finished.stderr.contains("note: --vk is now called --key"), "{}", finished.stderr);
    let new = old.map(|arg| if arg == "--vk" { "--key" } else { arg });
    let finished = fixture.plimsoll(&new).expect(0);
    assert!(!finished.stderr.contains("note: --vk"), "{}", finished.stderr);
    let printed = fixture.plimsoll(&["gateway", "--persona", "proxy", "--print"]).expect(0);
    let same = fixture.plimsoll(&["gateway", "--preset", "proxy", "--print"]).expect(0);
    assert_eq!(printed.stdout, same.stdout);
}
