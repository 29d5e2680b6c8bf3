//! The environment for people: build its tools, start it, watch it tell a story.

mod demo;
mod stay;

use std::process::ExitCode;

use anyhow::Result;
use capasg_environment::Tools;
use clap::{Parser, Subcommand};

/// The real control plane on this machine, with a simulated AWS
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Builds the upstream programs; the last line is the directory that they are in
    Tools,
    /// Starts everything and keeps it running until Ctrl-C
    Env,
    /// Shows the lifecycle of one pool, from creation to deletion; exits with status 0 only if every step was reached
    Demo {
        /// Keeps everything running instead of deleting the pool, and prints how to reach it
        #[arg(long)]
        keep: bool,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    match Arguments::parse().command {
        Command::Tools => {
            let tools = tokio::task::spawn_blocking(|| Tools::ready(&|line| eprintln!("{line}"))).await??;
            println!("{}", tools.folder().display());
            Ok(())
        }
        Command::Env => stay::env().await,
        Command::Demo { keep } => demo::run(keep).await,
    }
}
