//! The command line: what a Deployment or a person asks of the one binary.

mod address;
mod duration;
mod gates;
mod manager;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use self::{
    address::Address,
    manager::{LeaderElection, LoggingFormat, ManagerArgs},
};

/// Cluster API infrastructure provider for pools of nodes on AWS Auto Scaling groups.
#[derive(Debug, Parser)]
#[command(version, name = "capasg", arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the controllers.
    Manager(Box<ManagerArgs>),
    /// Print the custom resource definitions, or write one file each.
    Crds(CrdsArgs),
}

/// Arguments of `capasg crds`.
#[derive(Debug, Args)]
pub struct CrdsArgs {
    /// Write one file per definition into this folder in place of printing them.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// Print the API reference as Markdown in place of the definitions.
    #[arg(long, conflicts_with = "dir")]
    pub reference: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
