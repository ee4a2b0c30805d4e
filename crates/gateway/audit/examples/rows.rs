//! Offers rows from several threads as fast as they can and checks the counts against the file.
//!
//! ```sh
//! cargo run --release -p plimsoll-gateway-audit --example rows -- \
//!     FILE [ROWS [THREADS [drop|block]]]
//! ```

use std::error::Error;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use plimsoll_gateway_audit::{Audit, Offered, Row, Settings, Stats, Target};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize| arguments.get(index).map(String::as_str);
    let path = Path::new(argument(0).ok_or("usage: rows FILE [ROWS [THREADS [drop|block]]]")?);
    let rows: u64 = argument(1).unwrap_or("10000000").parse()?;
    let threads: u64 = argument(2).unwrap_or("2").parse()?;
    let block = argument(3) == Some("block");

    let audit = Audit::open(&Settings::new(Target::File(path.to_owned())), |_| ())?;
    let start = now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let share = rows / threads + u64::from(thread < rows % threads);
            let audit = &audit;
            scope.spawn(move || offer(audit, share, block));
        }
    });
    let offered = start.elapsed();
    let stats = audit.close();
    show(&stats, rows, offered, start.elapsed(), lines(path)?)
}

fn offer(audit: &Audit, rows: u64, block: bool) {
    for number in 0..rows {
        let mut text = [b'0'; 20];
        let row = row(number, id(number, &mut text));
        // Dropped rows are counted.
        let _counted: Offered = if block { audit.offer_blocking(&row) } else { audit.offer(&row) };
    }
}

/// The row of a chat through a gateway with everything on.
fn row(number: u64, request_id: &str) -> Row<'_> {
    Row {
        timestamp: 1_763_700_000_000 + number / 100,
        tenant: "retail",
        route: "chat",
        method: "POST",
        path: "/v1/chat/completions",
        status: 200,
        latency_us: 1234,
        upstream_us: Some(1100),
        request_bytes: 612,
        response_bytes: 843,
        client: Some([127, 0, 0, 1].into()),
        user_agent: "plimsoll/0.1",
        request_id,
        policy_decision: "allow",
        rules: &[],
        model: "gpt-small",
        input_tokens: Some(128),
        output_tokens: Some(128),
        cache: "miss",
        tool: "",
        outcome: "",
        left_out: "",
        refused_by: "",
        ended_early: "",
    }
}

/// A number in digits, without an allocation, which would be measured too.
fn id(mut number: u64, text: &mut [u8; 20]) -> &str {
    for digit in text.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
    std::str::from_utf8(text).unwrap_or_default()
}

fn lines(path: &Path) -> std::io::Result<u64> {
    let mut reader = BufReader::with_capacity(1 << 20, std::fs::File::open(path)?);
    let mut lines = 0;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(lines);
        }
        let length = buffer.len();
        lines += memchr::memchr_iter(b'\n', buffer).count() as u64;
        reader.consume(length);
    }
}

fn show(
    stats: &Stats,
    rows: u64,
    offered: Duration,
    closed: Duration,
    lines: u64,
) -> Result<(), Box<dyn Error>> {
    let rate = |rows: u64, time: Duration| rows as f64 / time.as_secs_f64();
    let mut out = std::io::stdout();
    writeln!(out, "offered  {:.0} rows/s", rate(rows, offered))?;
    writeln!(out, "written  {:.0} rows/s, fsync included", rate(stats.written, closed))?;
    writeln!(out, "{stats:?}")?;
    writeln!(out, "lines in the file: {lines}")?;
    if !stats.balanced() || stats.queued > 0 || lines != stats.written {
        return Err("the counts do not balance".into());
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "an example has no clock to be given")]
fn now() -> Instant {
    Instant::now()
}
