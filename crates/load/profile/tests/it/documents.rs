//! Checks the documentation: examples are valid, and referenced files and links exist.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{base_with, resolve};
use plimsoll_profile::{EnvVars, Overrides, Profile, Purpose, builtin_names, load};
use plimsoll_protocol::Dialect;

/// Folders whose files are named in pages.
const FOLDERS: [&str; 6] = ["crates/", "docs/", "scripts/", "fuzz/", "profiles/", "examples/"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// Paths of the files in a folder with an extension, from the root.
fn files(folder: &str, ending: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut paths: Vec<_> = names
        .filter(|name| name.ends_with(ending))
        .map(|name| format!("{folder}/{name}"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{folder}");
    paths
}

/// The hand-written pages.
fn pages() -> Vec<String> {
    let own = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/concepts.md"];
    let folders = ["docs/guides", "docs/adr"].into_iter().flat_map(|folder| files(folder, ".md"));
    own.map(str::to_owned).into_iter().chain(folders).collect()
}

/// The texts between each `open` and the next `close`.
fn between<'t>(text: &'t str, open: &str, close: &str) -> Vec<&'t str> {
    text.split(open).skip(1).filter_map(|rest| Some(rest.split_once(close)?.0)).collect()
}

#[test]
fn each_example_runs_as_it_is() {
    for path in files("examples", ".yaml") {
        let profile = Profile::open(root().join(&path).to_str().unwrap()).unwrap();
        let flags = Overrides::default().with("key", "key", "a-key");
        let compares = page(&path).contains("\ntargets:");
        let purpose = if compares { Purpose::Versus } else { Purpose::Run };
        let plan = load(&profile, &EnvVars::default(), &flags, purpose).unwrap();
        assert_eq!(format!("examples/{}.yaml", plan.name), path);
    }
}

#[test]
fn each_profile_and_part_of_one_in_the_guides_is_accepted() {
    let mut blocks = 0;
    for path in files("docs/guides", ".md") {
        for block in between(&page(&path), "```yaml\n", "```") {
            let variables = [("GATEWAY_KEY", "k")];
            let plan = resolve(&base_with(block), &variables, &Overrides::default());
            assert!(plan.is_ok(), "{path}: {}\n{block}", plan.unwrap_err());
            blocks += 1;
        }
    }
    assert!(blocks >= 3, "{blocks}");
}

#[test]
fn lists_of_names_are_complete() {
    let guide = page("docs/guides/first-profile.md");
    for dialect in Dialect::ALL {
        assert!(guide.contains(&format!("`{}`", dialect.name())), "{}", dialect.name());
    }
    for name in builtin_names() {
        let tier = name.rsplit_once('-').map_or(name, |(tier, _)| tier);
        let named = [format!("`{name}`"), format!("`{tier}-*`")];
        assert!(named.iter().any(|named| guide.contains(named)), "{name}");
    }
}

#[test]
fn each_link_has_a_target() {
    for path in pages() {
        let text = page(&path);
        for target in between(&text, "](", ")").into_iter().filter(|to| !to.contains("://")) {
            let file = target.split('#').next().unwrap();
            let linked = root().join(&path).parent().unwrap().join(file);
            assert!(file.is_empty() || linked.exists(), "{path}: {target}");
        }
    }
}

#[test]
fn each_file_that_a_page_names_exists() {
    // A text with a placeholder, or a part of a command, is not a path.
    for path in pages() {
        for named in page(&path).split('`').skip(1).step_by(2).filter(is_path) {
            // The architecture names files by crate, without the folder that groups crates.
            let there = ["", "crates", "crates/load", "crates/gateway", "crates/proof"]
                .iter()
                .any(|folder| root().join(folder).join(named).exists());
            assert!(there, "{path}: {named}");
        }
    }
}

fn is_path(word: &&str) -> bool {
    let known = FOLDERS.iter().any(|folder| word.starts_with(folder)) || word.contains("/src/");
    known && !word.contains([' ', '*']) && !word.contains("NAME")
}
