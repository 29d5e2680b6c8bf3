//! The environment for people: build its tools, start it, watch it work.

use anyhow::Result;
use capasg_environment::{Environment, Settings, Tools};
use clap::{Parser, Subcommand};

/// The real control plane on this machine.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Builds the upstream programs and prints the folder they are in
    Tools,
    /// Starts everything and stays up until Ctrl-C
    Env,
}

#[tokio::main]
async fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Tools => {
            let tools = tokio::task::spawn_blocking(|| Tools::ready(&|line| eprintln!("{line}"))).await??;
            println!("{}", tools.folder().display());
            Ok(())
        }
        Command::Env => {
            let environment = Environment::start(Settings::from_env()).await?;
            println!("{}", environment.management().api().kubeconfig().display());
            tokio::signal::ctrl_c().await?;
            environment.stop().await
        }
    }
}
