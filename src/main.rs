//! The one binary: it wires the parts together and holds no rule of its own.

mod addons;
mod cli;
mod crds;
mod diagnostics;
mod endpoints;
mod errors;
mod event_rules;
mod extension;
mod health;
mod iam;
mod input;
mod intake;
mod kubernetes;
mod leadership;
mod lifecycle;
mod logging;
mod manager;
mod metrics;
mod rate;
mod readiness;
mod reference;
mod server;
mod signals;
mod storage;
mod tls;
mod webhook;
mod why;

use std::{process::ExitCode, time::Duration};

use anyhow::{Context as _, Result, anyhow};
use clap::Parser as _;

use crate::cli::{AddonsAction, Cli, Command, ExtensionAction, IamAction, IamCommand, LoggingFormat};

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Manager(args) => args.validate().and_then(|()| {
            let run = async || Box::pin(manager::run(&args)).await;
            serve(args.logging_format, args.verbosity, "the manager", run)
        }),
        Command::Addons(command) => match &command.action {
            Some(AddonsAction::Diff(args)) => {
                let run = async || Box::pin(addons::diff(args)).await;
                block_on(run).flatten().map(|()| ExitCode::SUCCESS)
            }
            None => command.args.validate().and_then(|()| {
                let args = &command.args;
                let run = async || Box::pin(addons::run(args)).await;
                serve(args.logging_format, args.verbosity, "the add-on provider", run)
            }),
        },
        Command::ExecChild(args) => return addons::exec_child(args),
        Command::Extension(command) => match &command.action {
            Some(ExtensionAction::CheckSettings(args)) => extension::check_settings(args),
            None => {
                let args = &command.args;
                let run = async || Box::pin(extension::run(args)).await;
                serve(args.logging_format, args.verbosity, "the extension", run)
            }
        },
        Command::Why(args) => {
            let run = async || Box::pin(why::run(&args)).await;
            block_on(run).flatten().map(|()| ExitCode::SUCCESS)
        }
        Command::Crds(args) => crds::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Iam(IamCommand { action: IamAction::Print(args) }) => {
            let run = async || Box::pin(iam::print(&args)).await;
            block_on(run).flatten().map(|()| ExitCode::SUCCESS)
        }
        Command::Events(args) => event_rules::run(&args).map(|()| ExitCode::SUCCESS),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("capasg: {}", errors::line(&error));
            ExitCode::FAILURE
        }
    }
}

/// Runs a future to its end.
fn block_on(run: impl AsyncFnOnce() -> Result<()>) -> Result<Result<()>> {
    // Before anything speaks TLS: with two providers in the tree rustls would have to guess, and panics.
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .map_err(|_| anyhow!("another TLS provider is installed already"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let result = runtime.block_on(run());
    // Remaining tasks must not delay the exit: a process that lost the lease must not run on.
    runtime.shutdown_timeout(Duration::from_millis(100));
    Ok(result)
}

/// Runs a role until it ends. Failures are logged once logging is set up.
fn serve(
    format: LoggingFormat,
    verbosity: u8,
    role: &str,
    run: impl AsyncFnOnce() -> Result<()>,
) -> Result<ExitCode> {
    logging::start(format, verbosity);
    Ok(match block_on(run)? {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = errors::line(&error), "{role} failed");
            ExitCode::FAILURE
        }
    })
}
