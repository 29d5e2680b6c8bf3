//! The environment for people: build its tools, start it, watch it tell a story.

mod demo;
mod stay;

use std::{path::Path, process::ExitCode};

use anyhow::Result;
use capasg_environment::{Tools, add_on_programs, road};
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
    /// Shows a safe upgrade: the Runtime Extension waits for an image, a maintenance window and an approval, and verifies
    /// the nodes
    DemoUpgrade {
        /// Keeps everything running instead of deleting the cluster, and prints how to reach it
        #[arg(long)]
        keep: bool,
    },
    /// Runs the commands of README.md with Cluster API Provider AWS and moto in place of AWS, and prints a table of them
    Road,
    /// Shows Helm add-ons: a chart on a Cluster that a label selects, from its installation to its deletion
    DemoAddons {
        /// Keeps everything running instead of uninstalling the chart, and prints how to reach it
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
            let build = || {
                let say = |line: &str| eprintln!("{line}");
                let tools = Tools::ready(&say)?;
                // Here, so that no test builds Helm.
                add_on_programs(&say).map(|_| tools)
            };
            let tools = tokio::task::spawn_blocking(build).await??;
            println!("{}", tools.folder().display());
            Ok(())
        }
        Command::Env => stay::env().await,
        Command::Demo { keep } => demo::run(demo::Story::Pool, keep).await,
        Command::DemoUpgrade { keep } => demo::run(demo::Story::Upgrade, keep).await,
        Command::Road => {
            road::walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?).await
        }
        Command::DemoAddons { keep } => demo::run(demo::Story::AddOns, keep).await,
    }
}
