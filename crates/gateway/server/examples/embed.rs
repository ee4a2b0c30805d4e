//! A gateway embedded in another program. Run it with
//! `cargo run -p plimsoll-gateway-server --example embed -- gateway.yaml`.

use std::error::Error;
use std::io::Read as _;
use std::path::PathBuf;

use plimsoll_gateway_server::{Gateway, Spec};

#[expect(clippy::print_stdout, reason = "an example talks to whoever runs it")]
fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os().nth(1).map(PathBuf::from).ok_or("name a configuration file")?;
    let mut gateway = Gateway::spawn_from(&Spec::open(&file)?, &file)?;
    println!("listening on http://{}; close the input to stop", gateway.addr());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    gateway.shutdown();
    println!("{} requests served", gateway.served());
    Ok(())
}
