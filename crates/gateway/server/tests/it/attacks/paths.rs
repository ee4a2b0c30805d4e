//! Spellings of paths.

use super::Range;

/// The target, its status for a guest, and the target that the upstream saw, if any.
pub(super) const CASES: &[(&str, u16, &str)] = &[
    // Visible to guests.
    ("/files/x", 200, "/files/x"),
    ("/files", 200, "/files"),
    ("/files/", 200, "/files/"),
    ("/files/x?y=1", 200, "/files/x?y=1"),
    ("/files/privateer", 200, "/files/privateer"),
    ("/files/a:b@c!$&'()*+,=", 200, "/files/a:b@c!$&'()*+,="),
    ("/files/a%20b", 200, "/files/a%20b"),
    ("/files/caf%C3%A9", 200, "/files/caf%C3%A9"),
    ("/files/.hidden", 200, "/files/.hidden"),
    ("/files/...", 200, "/files/..."),
    ("/files/100%25", 200, "/files/100%25"),
    ("/files/%2B", 200, "/files/%2B"),
    ("/strip/x?y", 200, "/x?y"),
    ("/strip", 200, "/"),
    ("/strip?y", 200, "/?y"),
    // Rewritten to one form.
    ("/files/%78", 200, "/files/x"),
    ("/%66iles/x", 200, "/files/x"),
    ("/files/caf%c3%a9", 200, "/files/caf%C3%A9"),
    ("/files/%2bx", 200, "/files/%2Bx"),
    ("/files/%3a%40", 200, "/files/:@"),
    ("/files/a[1]", 200, "/files/a%5B1%5D"),
    ("/files/{a}|\"", 200, "/files/%7Ba%7D%7C%22"),
    ("/strip/%66iles/x", 200, "/files/x"),
    ("/files/x?%66=%2f../", 200, "/files/x?%66=%2f../"),
    // The protected prefix, in its own and in equivalent spellings.
    ("/files/private/x", 403, ""),
    ("/files/private", 403, ""),
    ("/files/private/", 403, ""),
    ("/files/private?x", 403, ""),
    ("/files/%70rivate/x", 403, ""),
    ("/files/%70%72%69%76%61%74%65/x", 403, ""),
    ("/%66%69%6C%65%73/%70rivate/x", 403, ""),
    ("/files/privat%65", 403, ""),
    // Empty segments.
    ("//files/private/x", 400, ""),
    ("/files//private/x", 400, ""),
    ("/files///private/x", 400, ""),
    ("/files/private//x", 400, ""),
    ("//", 400, ""),
    ("/files/x//", 400, ""),
    ("//gateway/files/private", 400, ""),
    // Dot segments.
    ("/files/./private/x", 400, ""),
    ("/files/x/../private/x", 400, ""),
    ("/files/%2e/private/x", 400, ""),
    ("/files/%2E/private/x", 400, ""),
    ("/files/x/%2e%2e/private/x", 400, ""),
    ("/files/x/.%2e/private/x", 400, ""),
    ("/files/x/%2e./private/x", 400, ""),
    ("/../files/private/x", 400, ""),
    ("/files/private/..", 400, ""),
    ("/files/x/..", 400, ""),
    ("/.", 400, ""),
    ("/strip/../files/private/x", 400, ""),
    ("/strip/%2e%2e/files/private", 400, ""),
    // Encoded separators, backslashes and parameters.
    ("/files%2fprivate/x", 400, ""),
    ("/files%2Fprivate%2Fx", 400, ""),
    ("/files/x%2f..%2fprivate/x", 400, ""),
    ("/files\\private\\x", 400, ""),
    ("/files/x\\..\\private", 400, ""),
    ("/files%5cprivate", 400, ""),
    ("/files/..%5cprivate", 400, ""),
    ("/files/..;/files/private/x", 400, ""),
    ("/files;a=b/private/x", 400, ""),
    ("/files/private;a=b/x", 400, ""),
    ("/files/;/private/x", 400, ""),
    ("/files%3b/private", 400, ""),
    ("/files/..%3B/private", 400, ""),
    // Encoded twice.
    ("/files/%2570rivate/x", 400, ""),
    ("/files/%252e%252e/private/x", 400, ""),
    ("/files%252fprivate", 400, ""),
    ("/files/%25%37%30rivate", 400, ""),
    ("/files/%25%32%65/private", 400, ""),
    ("/files/%2525%32%65", 400, ""),
    // Controls and encodings.
    ("/files/private%00/x", 400, ""),
    ("/files/%00", 400, ""),
    ("/files/x%0d%0aset-cookie:a", 400, ""),
    ("/files/x%09", 400, ""),
    ("/files/%7f", 400, ""),
    ("/files/%", 400, ""),
    ("/files/%7", 400, ""),
    ("/files/%zz", 400, ""),
    ("/files/%u0070rivate", 400, ""),
    ("/files/%ff", 400, ""),
    ("/files/%c0%afprivate", 400, ""),
    ("/files/%c0%ae%c0%ae/private", 400, ""),
    ("/files/%e0%80%af", 400, ""),
    ("/files/%ed%a0%80", 400, ""),
    ("/files/caf\u{e9}", 400, ""),
    // Queries and fragments.
    ("/files/x?a=%00", 400, ""),
    ("/files/x?a=%", 400, ""),
    ("/files/x?a=\u{e9}", 400, ""),
    ("/files/x#y", 400, ""),
    ("/files/x?a#/../private", 400, ""),
    ("#/files/x", 400, ""),
    // Targets that are no paths.
    ("files/x", 400, ""),
    ("?x", 400, ""),
    ("*", 400, ""),
    ("gateway:80", 400, ""),
    ("http://gateway/files/x", 200, "/files/x"),
    ("http://GATEWAY/files/%78?y", 200, "/files/x?y"),
    ("http://gateway/files/private/x", 403, ""),
    ("http://gateway/files/%70rivate/x", 403, ""),
    ("http://gateway//files/private/x", 400, ""),
    ("http://other/files/x", 400, ""),
    ("http://user@gateway/files/x", 400, ""),
    ("http://gateway:81/files/x", 400, ""),
    ("ftp://gateway/files/x", 400, ""),
    ("http:/files/x", 400, ""),
    // Unknown ones.
    ("/", 404, ""),
    ("/nowhere", 404, ""),
    ("/FILES/private", 404, ""),
];

#[test]
fn no_spelling_of_a_path_gets_past_a_rule() {
    let range = Range::new();
    for (target, status, seen) in CASES {
        let request = format!("GET {} HTTP/1.1\r\n@\r\n", target.replace('@', "\u{1}"));
        let line = format!("GET {seen}");
        let lines: &[&str] = if seen.is_empty() { &[] } else { &[&line] };
        range.run_one(target, &request, *status, lines);
    }
    range.settle();
}
