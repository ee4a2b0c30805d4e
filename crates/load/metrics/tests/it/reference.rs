//! The reference page is up to date.

#[test]
fn the_reference_page_equals_the_catalog() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/metrics.md");
    expect_test::expect_file![path].assert_eq(&plimsoll_metrics::reference::metrics_page());
}
