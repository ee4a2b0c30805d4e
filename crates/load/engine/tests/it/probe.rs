//! The probe before the load.

use plimsoll_engine::Run;

use crate::support::{CHAT, mock, plan, url};

#[test]
fn the_probe_tells_what_would_make_the_load_pointless() {
    let probe = |target: &str, profile: &str| {
        Run::prepare(plan(target, &format!("{CHAT}stages: '1:1s'\n{profile}")))
            .unwrap()
            .probe()
            .unwrap()
    };
    let mock = mock("");
    let fine = probe(&url(&mock), "");
    assert_eq!((fine.requests, fine.findings.len()), (1, 0));
    for (profile, fatal, words) in [
        ("headers: {x-mock-status: '401'}", true, "--key"),
        ("headers: {x-mock-status: '404'}", true, "--model"),
        ("headers: {x-mock-status: '429'}", false, "429"),
        ("headers: {x-mock-status: '503'}", false, "503"),
    ] {
        let found = &probe(&url(&mock), profile).findings[0];
        assert_eq!(found.fatal, fatal, "{profile}");
        assert!(found.message.contains(words), "{profile}: {}", found.message);
    }
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = probe(&format!("http://{closed}"), "");
    assert!(nobody.findings[0].fatal && nobody.findings[0].message.contains("--target"));
}
