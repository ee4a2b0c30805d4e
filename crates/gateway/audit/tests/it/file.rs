//! A file that cannot be written, for a while or for good.

use std::path::Path;
use std::sync::{Arc, Mutex};

use plimsoll_gateway_audit::{Audit, AuditError, Notice, Offered, Settings, Target};

use crate::support::{row, settings, until};

#[test]
fn a_folder_that_is_not_there_is_named_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("no-such-folder").join("audit");
    let error = Audit::open(&settings(Target::File(path.clone())), |_| ()).unwrap_err();
    assert!(matches!(&error, AuditError::File { .. }));
    let text = error.to_string();
    assert!(text.contains(path.to_str().unwrap()), "{text}");
    assert!(text.contains("exists and is writable"), "{text}");
}

#[test]
fn on_a_full_disk_all_rows_are_counted_as_dropped() {
    let full = settings(Target::File("/dev/full".into()));
    let told = Arc::new(Mutex::new(Vec::new()));
    let notices = Arc::clone(&told);
    let settings = Settings { batch: 10, ..full };
    let audit = Audit::open(&settings, move |n| notices.lock().unwrap().push(n)).unwrap();
    for id in 0..100 {
        assert_eq!(audit.offer(&row(&id.to_string())), Offered::Queued);
    }
    let stats = audit.close();
    assert_eq!((stats.accepted, stats.written, stats.dropped.store), (100, 0, 100));
    assert!(stats.balanced() && stats.retries >= 2, "{stats:?}");
    assert!(audit.last_error().unwrap().contains("/dev/full"));
    let told = told.lock().unwrap();
    assert!(matches!(told.as_slice(), [Notice::Failing(why)] if why.contains("free disk space")));
}

/// The folder goes and comes back; rows offered meanwhile are in the new file or counted as lost.
#[test]
fn a_folder_that_is_removed_and_comes_back() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("logs");
    let path = folder.join("audit");
    std::fs::create_dir(&folder).unwrap();
    let audit = Audit::open(&settings(Target::File(path.clone())), |_| ()).unwrap();
    offer(&audit, "first", 50);
    until("the first rows are written", || audit.stats().written == 50);
    std::fs::remove_dir_all(&folder).unwrap();
    offer(&audit, "lost", 30);
    until("the rows without a folder are given up", || audit.stats().dropped.store == 30);
    std::fs::create_dir(&folder).unwrap();
    offer(&audit, "later", 20);
    let stats = audit.close();
    assert_eq!((stats.accepted, stats.written, stats.dropped.store), (100, 70, 30));
    assert_eq!(lines(&path), ids("later", 20));
}

fn offer(audit: &Audit, name: &str, count: u64) {
    for id in ids(name, count) {
        assert_eq!(audit.offer(&row(&id)), Offered::Queued);
    }
}

fn ids(name: &str, count: u64) -> Vec<String> {
    (0..count).map(|number| format!("{name}{number}")).collect()
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| crate::support::id_of(line).to_owned()).collect()
}
