#[test]
fn dump() {
    let folder = std::path::Path::new("/work/shared/seeds");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    for path in files {
        match plimsoll_audit::audit(&path.to_string_lossy(), &std::fs::read(&path).unwrap()) {
            Ok(r) => println!("{}", r.text(true)),
            Err(e) => println!("{path:?} {e}"),
        }
    }
}
