//! `plimsoll report`: the report of a stored run.

use std::fs;

use crate::support::{FAST, Fixture};

#[test]
fn every_format_prints_the_file_that_the_run_wrote() {
    let fixture = Fixture::with(FAST);
    fixture.run(&["minimal", "--stages", "2:300ms"]).expect(0);
    let run = fixture.only_run();
    let folder = run.to_str().unwrap();
    for (format, file) in [
        ("text", "report.txt"),
        ("json", "summary.json"),
        ("csv", "report.csv"),
        ("prometheus", "metrics.prom"),
    ] {
        let shown = fixture.plimsoll(&["report", folder, "--format", format]).expect(0);
        assert_eq!(shown.stdout, fs::read_to_string(run.join(file)).unwrap(), "{format}");
        assert_eq!(shown.stderr, "");
    }
}

#[test]
fn a_folder_that_is_not_a_readable_run_is_an_error() {
    let fixture = Fixture::with(FAST);
    let write = |path: &str, text: &str| {
        let path = fixture.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("torn/summary.json", "{\"schema\": \"plimsoll.summ");
    write("later/summary.json", "{\"schema\": \"plimsoll.summary/99\"}");
    write("planless/plan.json", "{}");
    for (folder, code, part) in [
        ("absent", 2, "is not the folder of a run"),
        (".", 2, "is not the folder of a run"),
        ("torn", 3, "torn/summary.json"),
        ("later", 3, "plimsoll.summary/99"),
        ("planless", 3, "planless/plan.json"),
    ] {
        let output = fixture.plimsoll(&["report", folder]).expect(code);
        assert!(output.stderr.contains(part), "{folder}: {}", output.stderr);
    }
}
