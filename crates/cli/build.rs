//! Tells the program its build profile and features, for its reports.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Cargo's PROFILE is only ever debug or release; the folder has the profile's own name:
    // target/PROFILE/build/PACKAGE-HASH/out.
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    let folder = Path::new(&out).ancestors().nth(3).and_then(Path::file_name);
    let name = folder.and_then(|name| name.to_str()).unwrap_or("unknown");
    println!("cargo::rustc-env=PLIMSOLL_BUILD_PROFILE={name}");
    let features = std::env::vars().filter_map(|(variable, _)| {
        variable
            .strip_prefix("CARGO_FEATURE_")
            .map(|feature| format!(" {}", feature.to_lowercase()))
    });
    let mut features: Vec<_> = features.collect();
    features.sort();
    println!("cargo::rustc-env=PLIMSOLL_BUILD={name}{}", features.concat());
}
