//! The simulator as a program: serves on an address until it is stopped.

use std::net::SocketAddr;

use anyhow::Context as _;
use capasg_fake_aws::{
    Simulator,
    http::{Pace, Server},
};
use clap::Parser;

/// Serves simulated Auto Scaling, EC2, SSM and STS APIs, and a control API under /_sim/.
#[derive(Parser)]
struct Options {
    /// Address to listen on; port 0 selects a free port.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Speed of virtual time relative to the wall clock; 0 pauses virtual time.
    #[arg(long, default_value_t = 1.0)]
    speed: f64,
    /// Seed of all generated IDs.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .init();
    let options = Options::parse();
    anyhow::ensure!(options.speed.is_finite() && options.speed >= 0.0, "--speed must be 0 or greater");
    let simulator = Simulator::new(options.seed);
    let server = Server::start_paced(simulator, options.listen, Pace::RealTime(options.speed))
        .await
        .with_context(|| format!("cannot listen on {}", options.listen))?;
    // Who reads the endpoint may send a signal at once.
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    println!("{}", server.endpoint());
    tokio::select! {
        result = tokio::signal::ctrl_c() => result?,
        _ = terminated.recv() => {}
    }
    server.shutdown().await;
    Ok(())
}
