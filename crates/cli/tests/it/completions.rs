//! Completions, by the shell where it is there.

use std::fs;
use std::process::Command;

use plimsoll_profile::builtin_names;

use crate::support::command;

fn script(shell: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = command(folder.path(), &["completions", shell]).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// What bash offers for the last of these words.
fn offered(words: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("realistic-own.yaml"), "").unwrap();
    fs::write(folder.path().join("other.yaml"), "").unwrap();
    // Too long for an argument.
    fs::write(folder.path().join(".complete.bash"), script("bash")).unwrap();
    // What readline does: the function that is registered is called with the words.
    let ask = "source .complete.bash; function=$(complete -p plimsoll); function=${function##*-F }; \
               function=${function%% *}; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
               \"$function\" plimsoll \"${!#}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"; \
               printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output = Command::new("bash")
        .args(["--norc", "-c", ask, "bash"])
        .args(words)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let offered = String::from_utf8(output.stdout).unwrap();
    offered.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_offers_profiles_and_files() {
    let all: Vec<_> = builtin_names().collect();
    for words in [&["plimsoll", "run", ""][..], &["plimsoll", "run", "--quiet", ""]] {
        let offered = offered(words);
        for name in all.iter().copied().chain(["realistic-own.yaml", "other.yaml"]) {
            assert!(offered.iter().any(|word| word == name), "{words:?}: no {name} in {offered:?}");
        }
        assert!(!offered.iter().any(|word| word.starts_with('-')), "{offered:?}");
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
    assert!(script("bash").contains("-F _plimsoll_and_files -o nosort -o bashdefault -o default"));
    let commands = offered(&["plimsoll", ""]);
    assert!(commands.contains(&"calibrate".to_owned()), "{commands:?}");
    for hidden in ["terminal-guard", "child"] {
        assert!(!commands.iter().chain(&suites).any(|word| word == hidden), "{hidden}");
    }
}

#[test]
fn zsh_and_fish_offer_profiles_beside_files() {
    let names = builtin_names().collect::<Vec<_>>().join(" ");
    let zsh = script("zsh");
    assert!(
        zsh.contains(&format!("\"profiles:built-in profile:({names})\" \"files:file:_files\""))
    );
    assert!(!zsh.contains(&format!(":({names})'")), "a list without files is left");
    let uses = zsh.matches(":_plimsoll_profiles'").count();
    let fish = script("fish");
    for script in [&zsh, &fish] {
        assert!(!script.contains("'terminal-guard:") && !script.contains("-a \"terminal-guard\""));
    }
    let lines = fish.lines().filter(|line| line.contains(&names)).count();
    assert!(uses >= 4 && lines == uses, "zsh {uses}, fish {lines}");
    assert!(fish.contains("_from profile; and __fish_seen_subcommand_from show\" -a \""), "{fish}");
}
