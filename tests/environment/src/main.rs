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
    /// Builds the upstream programs; the last line is the folder that they are in
    Tools,
    /// Starts everything and stays up until Ctrl-C
    Env,
    /// Tells the story of one pool, from nothing to nothing; ends with status 0 only if every step was reached
    Demo {
        /// Stays up before the pool is deleted, and tells how to reach everything
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
