//! The reference page is the catalog.

use std::fs;

/// Refresh with `PLIMSOLL_BLESS=1 cargo test -p plimsoll-metrics reference`.
#[test]
fn the_reference_page_equals_the_catalog() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/metrics.md");
    let page = plimsoll_metrics::catalog::reference();
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference"))
            .unwrap();
        fs::write(path, &page).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap(), page, "refresh it, see above");
}
