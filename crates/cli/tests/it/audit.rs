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
