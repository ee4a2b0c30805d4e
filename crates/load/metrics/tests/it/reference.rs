//! The reference page is up to date.

#[test]
fn the_reference_page_equals_the_catalog() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/metrics.md");
    plimsoll_golden::check(path, &plimsoll_metrics::reference::metrics_page());
}
