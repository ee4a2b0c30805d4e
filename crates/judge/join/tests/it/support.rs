//! Generates runs and logs. Their lines are written here, without the product's code.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use plimsoll_join::{Join, JoinError, MapChoice, Mapping, Options};
use tempfile::TempDir;

/// Start of the test runs.
pub(crate) const START: i64 = 1_795_000_000_000_000_000;
const MS: i64 = 1_000_000;

/// Send time of request `n`: one every 10 ms.
pub(crate) const fn sent(n: i64) -> i64 {
    START + n * 10 * MS
}

/// Time the client waited: 20 to 30 ms.
pub(crate) const fn service(n: i64) -> i64 {
    20 * MS + n * 7_919 % 10_000 * 1_000
}

/// Network times there and back: 100 to 500 us each.
pub(crate) const fn ways(n: i64) -> (i64, i64) {
    (100_000 + n * 104_729 % 400_000, 100_000 + n * 1_299_709 % 400_000)
}

/// The gateway's total.
pub(crate) const fn total(n: i64) -> i64 {
    let (there, back) = ways(n);
    service(n) - there - back
}

/// Upstream time; the gateway itself takes 300 us.
pub(crate) const fn upstream(n: i64) -> i64 {
    total(n) - 300_000
}

pub(crate) fn id(n: i64) -> String {
    format!("{n:08x}-0000-4000-8000-{n:012x}-0")
}

/// Milliseconds with the full resolution of a nanosecond.
pub(crate) fn ms(nanos: i64) -> String {
    format!("{}.{:06}", nanos / MS, nanos % MS)
}

/// A row of `results.jsonl`: a completed request with 128 and 64 tokens.
pub(crate) fn run_row(n: i64) -> String {
    let (sent, service) = (sent(n), ms(service(n)));
    format!(
        r#"{{"conversation":"c","request_id":"{}","scenario":"chat","target":"default","stage":"@100:10s","turn":0,"stream":true,"warmup":false,"reused":true,"intended_unix_ns":{},"dispatch_lag_ms":0.05,"response_time_ms":{service},"service_time_ms":{service},"events":64,"status":200,"outcome":"completed","policy_decision":"allow","prompt_tokens":128,"prompt_tokens_source":"reported","completion_tokens":64,"completion_tokens_source":"reported","bytes_out":900,"bytes_in":9000}}"#,
        id(n),
        sent - 50_000
    )
}

/// An audit row of our gateway, with a clock `apart` nanoseconds ahead.
pub(crate) fn audit_row(n: i64, apart: i64, output_tokens: u32) -> String {
    let (total, at) = (total(n) / 1_000, (sent(n) + ways(n).0 + apart) / MS);
    format!(
        r#"{{"timestamp":{at},"route":"chat","method":"POST","path":"/v1/chat/completions","status":200,"latency_us":{total},"upstream_us":{},"request_bytes":700,"response_bytes":8000,"client":"127.0.0.1","request_id":"{}","policy_decision":"allow","input_tokens":128,"output_tokens":{output_tokens}}}"#,
        upstream(n) / 1_000,
        id(n)
    )
}

pub(crate) struct Files {
    pub(crate) folder: TempDir,
}

impl Files {
    /// A folder with a run.
    pub(crate) fn of(rows: impl IntoIterator<Item = String>) -> Self {
        let files = Self { folder: tempfile::tempdir().unwrap() };
        files.lines("results.jsonl", rows);
        files
    }

    /// A run of `count` requests.
    pub(crate) fn run(count: i64) -> Self {
        Self::of((0..count).map(run_row))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes lines.
    pub(crate) fn lines(&self, name: &str, lines: impl IntoIterator<Item = String>) {
        let mut file = std::io::BufWriter::new(fs::File::create(self.path(name)).unwrap());
        for line in lines {
            writeln!(file, "{line}").unwrap();
        }
        file.flush().unwrap();
    }

    /// Compresses a file next to itself.
    pub(crate) fn gzip(&self, name: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&fs::read(self.path(name)).unwrap()).unwrap();
        let packed = encoder.finish().unwrap();
        fs::write(self.path(&format!("{name}.gz")), &packed).unwrap();
        packed
    }

    /// Joins the run with a file of the folder.
    pub(crate) fn join(&self, log: &str, map: &[&str]) -> Result<Join, JoinError> {
        self.join_with(&self.path(log), &options(map))
    }

    pub(crate) fn join_with(&self, log: &Path, options: &Options) -> Result<Join, JoinError> {
        plimsoll_join::join(self.folder.path(), log, options, &mut |_| (), &mut |_, _| ())
    }

    /// The error message of a wrong call.
    pub(crate) fn usage(&self, log: &str, map: &[&str]) -> String {
        let error = self.join(log, map).unwrap_err();
        assert!(error.is_usage(), "{error}");
        error.to_string()
    }
}

pub(crate) fn options(map: &[&str]) -> Options {
    let entries = map.iter().map(|entry| Mapping::parse(entry).unwrap()).collect();
    let map = MapChoice { entries, ..MapChoice::default() };
    Options { map, ..Options::default() }
}
