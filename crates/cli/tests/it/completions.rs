//! Completions, tested by the shell if it is installed, otherwise by the program's answer to its
//! script.

use std::fs;
use std::path::Path;
use std::process::Command;

use plimsoll_profile::builtin_names;

use crate::support::command;

fn script(shell: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = command(folder.path(), &["completions", shell]).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// Bash's completions for the last of these words.
fn offered(words: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("realistic-own.yaml"), "").unwrap();
    fs::write(folder.path().join("other.yaml"), "").unwrap();
    fs::write(folder.path().join(".complete.bash"), script("bash")).unwrap();
    // Like readline, this calls the registered function with the words.
    let ask = "source .complete.bash; function=$(complete -p plimsoll); function=${function##*-F }; \
               function=${function%% *}; COMP_TYPE=9; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
               \"$function\" plimsoll \"${!#}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"; \
               printf '%s\\n' \"${COMPREPLY[@]}\"";
    let program = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().unwrap().display();
    let output = Command::new("bash")
        .args(["--norc", "-c", ask, "bash"])
        .args(words)
        .env("PATH", format!("{program}:{}", std::env::var("PATH").unwrap()))
        .current_dir(folder.path())
        .output()
        .unwrap();
    let offered = String::from_utf8(output.stdout).unwrap();
    offered.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_offers_profiles_and_files() {
    let all: Vec<_> = builtin_names().collect();
    for words in [&["plimsoll", "run", ""][..], &["plimsoll", "run", "--quiet", ""]] {
        let offered = offered(words);
        for name in all.iter().copied().chain(["realistic-own.yaml", "other.yaml"]) {
            assert!(offered.iter().any(|word| word == name), "{words:?}: no {name} in {offered:?}");
        }
    }
    assert_eq!(offered(&["plimsoll", "run", "reali"]), ["realistic", "realistic-own.yaml"]);
    assert_eq!(
        offered(&["plimsoll", "profile", "show", "reali"]),
        ["realistic", "realistic-own.yaml"]
    );
    // Flags, suites and the values of flags are offered as before.
    assert!(offered(&["plimsoll", "run", "--sta"]).contains(&"--stages".to_owned()));
    let suites = offered(&["plimsoll", "suite", ""]);
    for suite in ["agents", "baseline", "layers", "policy", "quick", "tiers"] {
        assert!(suites.iter().any(|word| word == suite), "no {suite} in {suites:?}");
    }
    assert!(offered(&["plimsoll", "run", "--ui", "fu"]).contains(&"full".to_owned()));
    assert_eq!(offered(&["plimsoll", "run", "oth"]), ["other.yaml"]);
    assert_eq!(offered(&["plimsoll", "suite", "poli"]), ["policy"]);
    let commands = offered(&["plimsoll", ""]);
    assert!(commands.contains(&"calibrate".to_owned()), "{commands:?}");
    assert!(!commands.iter().chain(&suites).any(|word| word == "child"), "it is hidden");
}

#[test]
fn every_shell_has_a_script_that_asks_the_program() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = script(shell);
        assert!(script.contains("PLIMSOLL_COMPLETE") && script.contains("plimsoll"), "{script}");
    }
}
