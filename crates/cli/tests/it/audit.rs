//! `plimsoll audit`: exit codes, text, JSON, stdin and refusals.

use std::fs;

use crate::support::{FAST, Fixture};

#[test]
fn exit_codes_say_what_was_found() {
    let fixture = Fixture::with(FAST);
    let page = fixture.folder.path().join("page.md");
    fs::write(&page, "| p50 | p99 |\n|---|---|\n| 9 ms | 5 ms |\n").unwrap();
    let output = fixture.plimsoll(&["audit", "page.md"]).expect(1);
    assert!(
        output.stdout.contains("impossible    line 3: p50 9 ms, p99 5 ms"),
        "{}",
        output.stdout
    );
    fs::write(&page, "| p50 | p99 |\n|---|---|\n| 5 ms | 9 ms |\n").unwrap();
    let output = fixture.plimsoll(&["audit", "page.md", "--understood"]).expect(0);
    assert!(output.stdout.contains("p50 = p50; p99 = p99"), "{}", output.stdout);
    // 600 samples, 6 beyond p99: cannot tell.
    let claim = ["audit", "--claim", "requests=600 p99=5ms"];
    fixture.plimsoll(&claim).expect(0);
    fixture.plimsoll(&[&claim[..], &["--strict"]].concat()).expect(1);
    let output = fixture.plimsoll(&["audit", "page.md", "--json", "-"]).expect(0);
    let json: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(json["schema"], "plimsoll.audit/1");
}

#[test]
fn headings_that_are_not_known_are_explained() {
    let fixture = Fixture::with(FAST);
    let page = "| Anfragen | Zeit |\n|---|---|\n| 600 | 9 ms |\n\n| p50 | Ende |\n|---|---|\n| 9 ms | 5 ms |\n";
    fs::write(fixture.folder.path().join("page.md"), page).unwrap();
    fixture.plimsoll(&["audit", "page.md"]).expect(0);
    let output = fixture.plimsoll(&["audit", "page.md", "--map", "Ende=p99"]).expect(1);
    assert!(output.stdout.contains("p50 9 ms, p99 5 ms"), "{}", output.stdout);
    let output = fixture.plimsoll(&["audit", "page.md", "--map", "Schluss=p99"]).expect(2);
    assert!(output.stderr.contains("no table has the heading `schluss`"), "{}", output.stderr);
    assert!(output.stderr.contains("Ende") && output.stdout.is_empty(), "{}", output.stderr);
    let output = fixture.plimsoll(&["audit", "page.md", "--map", "Ende"]).expect(2);
    assert!(output.stderr.contains("write HEADING=MEANING"), "{}", output.stderr);
}

/// What our commands write and print of a real run holds.
#[test]
fn our_own_output_passes() {
    let fixture = Fixture::with(FAST);
    let screen = fixture.run(&["minimal", "--stages", "w2:300ms,4:700ms"]).stdout;
    fixture.run(&["minimal", "--stages", "w2:300ms,4:700ms"]);
    let [run, other] = fixture.runs().try_into().unwrap();
    let (run, other) = (run.to_str().unwrap(), other.to_str().unwrap());
    let full = fixture.plimsoll(&["report", run]).expect(0).stdout;
    let compared = fixture.plimsoll(&["compare", run, "--new", other, "--markdown", "compare.md"]);
    let compared = compared.stdout;
    let folder = fixture.folder.path();
    for (name, text) in [("screen.txt", screen), ("full.txt", full), ("compared.txt", compared)] {
        fs::write(folder.join(name), text).unwrap();
    }
    let (text, json) = (format!("{run}/report.txt"), format!("{run}/summary.json"));
    for (file, figures) in [
        (text.as_str(), true),
        (&json, true),
        ("full.txt", true),
        // A screen and a comparison may have no table that is understood.
        ("screen.txt", false),
        ("compared.txt", false),
        ("compare.md", false),
    ] {
        let output = fixture.plimsoll(&["audit", file]);
        let without = !figures && output.stderr.contains("no figures are understood");
        assert!(output.code == Some(0) || without, "{file}: {}{}", output.stdout, output.stderr);
    }
}

#[test]
fn unusable_input_is_refused_with_one_message() {
    let fixture = Fixture::with(FAST);
    let folder = fixture.folder.path();
    fs::write(folder.join("page.html"), "<html><p>words</p></html>").unwrap();
    fs::write(folder.join("binary"), [0_u8, 1, 2]).unwrap();
    fs::write(folder.join("large.txt"), vec![b' '; (8 << 20) + 1]).unwrap();
    for (args, part) in [
        (&["audit"][..], "FILE"),
        (&["audit", "page.html"], "page.html: no figures"),
        (&["audit", "binary"], "binary: is not text"),
        (&["audit", "large.txt"], "large.txt: is larger than 8 MiB"),
        (&["audit", "absent.md"], "absent.md: No such file"),
        (&["audit", "--claim", "fast"], "claim `fast`"),
    ] {
        let output = fixture.plimsoll(args).expect(2);
        assert!(output.stderr.contains(part) && output.stdout.is_empty(), "{}", output.stderr);
    }
}
