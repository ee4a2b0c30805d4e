//! Shows the summary of a stored run: `cargo run -p plimsoll-report --example show --
//! runs/NAME/summary.json`.
#![expect(clippy::print_stdout, reason = "an example")]

use std::error::Error;

use plimsoll_report::{Style, text};
use plimsoll_run_files::read_summary;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("give the path of a summary.json")?;
    let summary = read_summary(&std::fs::read(path)?)?;
    print!("{}", text(&summary, Style::default()));
    Ok(())
}
