//! The program: prints its endpoint, serves, ends on SIGTERM.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result};

use crate::client::exchange;

#[tokio::test]
async fn the_program_prints_its_endpoint_and_exits_on_sigterm() -> Result<()> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_capasg-fake-aws"))
        .args(["--listen", "127.0.0.1:0", "--speed", "10", "--seed", "3"])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
    let addr = line.trim().strip_prefix("http://").context("no endpoint")?.parse()?;
    let reply = exchange(addr, "GET", "/_sim/time", "", "").await?.context("no reply")?;
    assert_eq!(reply.status, 200);
    assert!(Command::new("kill").arg(child.id().to_string()).status()?.success());
    assert!(tokio::task::spawn_blocking(move || child.wait()).await??.success());
    Ok(())
}

#[test]
fn a_wrong_speed_is_rejected() -> Result<()> {
    let output = Command::new(env!("CARGO_BIN_EXE_capasg-fake-aws")).args(["--speed=-1"]).output()?;
    assert!(!output.status.success());
    Ok(())
}
