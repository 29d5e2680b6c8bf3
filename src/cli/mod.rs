//! The command line of the one binary.

mod addons;
mod address;
mod duration;
mod endpoints;
mod extension;
mod gates;
mod iam;
mod manager;
mod queue;
mod why;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use self::{
    addons::{AddonsAction, AddonsArgs, AddonsCommand, ChartArgs, DiffArgs, ExecChildArgs},
    address::Address,
    duration::parse as parse_duration,
    endpoints::EndpointArgs,
    extension::{CheckSettingsArgs, ExtensionAction, ExtensionArgs, ExtensionCommand},
    iam::{IamAction, IamCommand, IamDocument, IamOutput, IamPrintArgs, Partition},
    manager::{LeaderElection, LoggingFormat, ManagerArgs},
    queue::EventQueues,
    why::{WhyArgs, WhyKind},
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
    /// Run the Runtime Extension: serve the Runtime Hooks that Cluster API calls.
    Extension(Box<ExtensionCommand>),
    /// Run the Helm add-on provider: charts on the Clusters that labels select.
    Addons(Box<AddonsCommand>),
    /// Start a program that ends with its parent; only `capasg addons` calls this.
    #[command(hide = true, disable_help_flag = true)]
    ExecChild(ExecChildArgs),
    /// Print why a Cluster or a pool waits: what the Runtime Extension answered for a Cluster, and what ends a block; the
    /// conditions of a pool, its instances and their Nodes, and what to check.
    Why(WhyArgs),
    /// Print the custom resource definitions, or write one file each.
    Crds(CrdsArgs),
    /// Print the AWS resources that `--event-queue` requires: EventBridge rules and their targets, the SQS queue and its
    /// policy.
    Events(EventsArgs),
    /// Print the permissions in AWS that CAPASG requires: policies, trust policies, statements for keys.
    Iam(IamCommand),
}

/// Arguments of `capasg crds`.
#[derive(Debug, Args)]
pub struct CrdsArgs {
    /// Write one file per definition into this directory instead of printing them.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// The definitions of the add-on provider instead of those of the infrastructure provider.
    #[arg(long)]
    pub addons: bool,

    /// Write the pages of the API reference in Markdown into the directory instead of the definitions.
    #[arg(long, requires = "dir")]
    pub reference: bool,
}

/// Arguments of `capasg events`.
#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Print the resources; no call to AWS is made.
    #[arg(long, required = true)]
    pub print: bool,

    /// Name of the queue, and prefix of the names of the rules.
    #[arg(long, value_name = "NAME", default_value = "capasg")]
    pub queue_name: String,

    /// Region of the queue; only needed for `--format=cli`.
    #[arg(long, value_name = "REGION", env = "AWS_REGION", default_value = "<region>")]
    pub region: String,

    /// Account of the queue, 12 digits; only needed for `--format=cli`.
    #[arg(long, value_name = "ACCOUNT", default_value = "<account>")]
    pub account: String,

    /// What to print.
    #[arg(long, value_name = "FORMAT", default_value = "cloudformation")]
    pub format: EventsFormat,
}

/// What `capasg events` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EventsFormat {
    /// A CloudFormation template: `aws cloudformation deploy` creates everything.
    #[value(name = "cloudformation")]
    CloudFormation,
    /// The inputs of `aws sqs create-queue`, `aws events put-rule` and `aws events put-targets`.
    Cli,
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
