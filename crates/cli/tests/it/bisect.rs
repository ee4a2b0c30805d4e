//! The recipe for regressions in the guide of suites, under a real `git bisect run`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/suites.md");

/// Replaces cargo: a commit defines the behavior of its build and its suite. If it is asked to
/// compare, the built program exits with the code that the commit names.
const CARGO: &str = r#"#!/bin/sh
state=$(cat state)
[ "$state" = broken ] && exit 101
mkdir -p target/release
cat > target/release/plimsoll <<END
#!/bin/sh
case "\$*" in "suite baseline "*"--against $GOOD"*) exit $state ;; esac
exit 2
END
chmod +x target/release/plimsoll
"#;

/// Exit codes of the suite, and builds that fail. The first commit that is slower is `x5`.
const COMMITS: [&str; 9] = ["0", "0", "broken", "3", "0", "1", "3", "broken", "1"];

/// The script of the guide between the quotes of `sh -c '...'`.
fn recipe() -> String {
    let guide = fs::read_to_string(GUIDE).unwrap();
    let (_, rest) = guide.split_once("git bisect run sh -c '").unwrap();
    rest.split_once('\'').unwrap().0.to_owned()
}

fn git(folder: &Path, args: &[&str]) -> Output {
    let path = std::env::var("PATH").unwrap();
    Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"])
        .args(args)
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", folder.join("bin").display()))
        .env("GOOD", folder.join("good.json"))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap()
}

#[test]
fn the_recipe_finds_the_first_slow_commit_past_those_that_prove_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("bin")).unwrap();
    fs::write(folder.join("bin/cargo"), CARGO).unwrap();
    fs::set_permissions(folder.join("bin/cargo"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.join("good.json"), "{}").unwrap();
    git(folder, &["init", "-q"]);
    for (number, state) in COMMITS.iter().enumerate() {
        fs::write(folder.join("state"), state).unwrap();
        fs::write(folder.join("number"), number.to_string()).unwrap();
        git(folder, &["add", "state", "number"]);
        git(folder, &["commit", "-qm", &format!("x{number}")]);
    }
    git(folder, &["bisect", "start", "HEAD", "HEAD~8"]);
    let output = git(folder, &["bisect", "run", "sh", "-c", &recipe()]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let found = git(folder, &["log", "-1", "--format=%s", "refs/bisect/bad"]);
    assert_eq!(String::from_utf8_lossy(&found.stdout).trim(), "x5", "{text}");
}

#[test]
fn without_the_good_result_the_recipe_stops() {
    let output = Command::new("sh")
        .args(["-c", &recipe()])
        .env("GOOD", "/nonexistent/good.json")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(255));
}
