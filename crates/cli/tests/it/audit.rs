//! `plimsoll audit`: exit codes, text, JSON, stdin and refusals.

use std::fs;

use crate::support::{FAST, Fixture};

#[test]
fn exit_codes_say_what_was_found() {
    let fixture = Fixture::with(FAST);
    let page = fixture.folder.path().join("page.md");
    fs::write(&page, "| p50 | p99 | Ende |\n|---|---|---|\n| 9 ms | 5 ms | 1 |\n").unwrap();
    let output = fixture.plimsoll(&["audit", "page.md"]).expect(1);
    assert!(
        output.stdout.contains("impossible, line 3: p50 9 ms exceeds p99 5 ms"),
        "{}",
        output.stdout
    );
    assert!(output.stdout.contains("not read: Ende"), "{}", output.stdout);
    fs::write(&page, "| requests | p99 | Ende |\n|---|---|---|\n| 60 | 9 ms | 5 |\n").unwrap();
    fixture.plimsoll(&["audit", "page.md"]).expect(0);
    fixture.plimsoll(&["audit", "page.md", "--strict"]).expect(1);
    fixture.plimsoll(&["audit", "page.md", "--map", "Ende=max:ms"]).expect(1);
    let output = fixture.plimsoll(&["audit", "page.md", "--json", "-"]).expect(0);
    let json: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(json["schema"], "plimsoll.audit/2");
    assert_eq!(json["files"][0]["findings"][0]["level"], "unsupported");
}

#[test]
fn unusable_input_is_refused_with_one_message() {
    let fixture = Fixture::with(FAST);
    let folder = fixture.folder.path();
    fs::write(folder.join("page.md"), "words\n\n|colour|\n|---|\n|red|\n").unwrap();
    fs::write(folder.join("binary"), [0_u8, 0xff, 2]).unwrap();
    fs::write(folder.join("large.txt"), vec![b' '; (8 << 20) + 1]).unwrap();
    for (args, part) in [
        (&["audit"][..], "FILE"),
        (&["audit", "page.md"], "page.md: has no table with known columns: colour"),
        (&["audit", "page.md", "--map", "colour"], "expected HEADING=MEANING"),
        (&["audit", "binary"], "binary: is not UTF-8 text"),
        (&["audit", "large.txt"], "large.txt: is larger than 8 MiB"),
        (&["audit", "absent.md"], "absent.md: No such file"),
    ] {
        let output = fixture.plimsoll(args).expect(2);
        assert!(output.stderr.contains(part) && output.stdout.is_empty(), "{}", output.stderr);
    }
}
