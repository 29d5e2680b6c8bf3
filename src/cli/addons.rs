//! The arguments of `capasg addons`, and those of the role that starts its child processes.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use anyhow::{Result, ensure};
use clap::{ArgAction, Args, Subcommand};

use super::{EndpointArgs, LeaderElection, LoggingFormat, duration};

/// Arguments of `capasg addons`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AddonsCommand {
    #[command(subcommand)]
    pub action: Option<AddonsAction>,

    #[command(flatten)]
    pub args: AddonsArgs,
}

/// What to do instead of running the add-on provider.
#[derive(Debug, Subcommand)]
pub enum AddonsAction {
    /// Print what `HelmChartProxies` would change on which Clusters: releases that are installed, upgraded and uninstalled,
    /// versions, and keys of values. Nothing is changed.
    Diff(DiffArgs),
}

/// Arguments of `capasg addons diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// YAML files with `HelmChartProxies` as they would be applied; `-` reads standard input. Without a file, print what
    /// the `HelmChartProxies` of the namespace still have to change.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Namespace of the `HelmChartProxies`. Defaults to the one of the kubeconfig's current context.
    #[arg(short, long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// Also print how resources of releases would differ, as Helm renders them for the Cluster. This prints values that are
    /// in resources; data of Secrets is masked.
    #[arg(long)]
    pub manifests: bool,

    #[command(flatten)]
    pub charts: ChartArgs,

    /// Directory for files of Helm, on a volume that is not shared. Defaults to the one for temporary files.
    #[arg(long, value_name = "DIR")]
    pub work_dir: Option<PathBuf>,

    /// Kubeconfig of the management cluster. Defaults to `KUBECONFIG` or `~/.kube/config`, then to the service account of
    /// the pod.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

/// Arguments about charts, of all that reads them.
#[derive(Debug, Args)]
pub struct ChartArgs {
    /// Accept repositories without TLS (`http://`).
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", action = ArgAction::Set)]
    pub allow_http_repositories: bool,

    /// Accept credentials and certificate authorities in Secrets of other namespaces. A user who may create a
    /// `HelmChartProxy` then uses any of these Secrets.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", action = ArgAction::Set)]
    pub allow_secrets_of_other_namespaces: bool,

    /// The program `helm`, version 3.
    #[arg(long, value_name = "FILE", default_value = "/helm")]
    pub helm: PathBuf,

    /// The program that renders values.
    #[arg(long, value_name = "FILE", default_value = "/capasg-values")]
    pub values_program: PathBuf,
}

/// Arguments of the running add-on provider. Durations are written as in Go: `300ms`, `15s`, `1h30m`.
#[derive(Debug, Args)]
pub struct AddonsArgs {
    #[command(flatten)]
    pub leader_election: LeaderElection,

    /// Watch only this namespace; if empty, watch all namespaces.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub namespace: String,

    #[command(flatten)]
    pub endpoints: EndpointArgs,

    /// How often every object is reconciled even if nothing changed.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration::parse)]
    pub sync_period: Duration,

    /// How many objects of one kind are reconciled at the same time. Each reconcile runs one process of Helm at most, with
    /// up to 150 MB of memory, more with very large charts.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrency: u16,

    /// How many releases of one Cluster are reconciled at the same time.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub cluster_concurrency: u16,

    #[command(flatten)]
    pub charts: ChartArgs,

    /// Directory for the private folders of Helm's operations, on a volume that is not shared; it must exist.
    #[arg(long, value_name = "DIR", default_value = "/run/capasg/addons")]
    pub work_dir: PathBuf,

    /// How long running operations may take to finish after SIGTERM. One that does not finish is killed, and the next leader
    /// repeats it.
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = duration::parse)]
    pub shutdown_timeout: Duration,

    /// Kubeconfig of the management cluster. Defaults to `KUBECONFIG` or `~/.kube/config`, then to the service account of
    /// the pod.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Log verbosity: 0 logs the lifecycle of the manager, operations on releases, warnings and errors; 2 adds minor
    /// failures.
    #[arg(short, long = "v", value_name = "N", default_value_t = 0)]
    pub verbosity: u8,

    /// Format of the log lines on standard error.
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    pub logging_format: LoggingFormat,
}

impl AddonsArgs {
    /// Checks flags that depend on each other.
    ///
    /// # Errors
    /// With a message that names the flags and what to change.
    pub fn validate(&self) -> Result<()> {
        ensure!(!self.sync_period.is_zero(), "--sync-period must be longer than 0");
        self.leader_election.validate()
    }
}

/// Arguments of `capasg exec-child`.
#[derive(Debug, Args)]
pub struct ExecChildArgs {
    /// The process ID of the parent, the program and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    fn parse(flags: &[&str]) -> Result<AddonsArgs, clap::Error> {
        match Cli::try_parse_from(["capasg", "addons"].iter().chain(flags))?.command {
            Command::Addons(command) => Ok(command.args),
            _ => unreachable!("the arguments are of the add-on provider"),
        }
    }

    #[test]
    fn what_weakens_the_isolation_is_off_by_default() {
        let args = parse(&[]).unwrap();
        assert!(!args.charts.allow_http_repositories && !args.charts.allow_secrets_of_other_namespaces);
        assert!(!args.leader_election.leader_elect);
        args.validate().unwrap();
        let args = parse(&["--allow-http-repositories", "--allow-secrets-of-other-namespaces=true"]).unwrap();
        assert!(args.charts.allow_http_repositories && args.charts.allow_secrets_of_other_namespaces);
        assert!(parse(&["--sync-period=0s"]).unwrap().validate().is_err());
        assert!(parse(&["--concurrency=0"]).is_err());
    }

    #[test]
    fn the_arguments_of_a_child_are_left_unchanged() {
        let child = ["7", "/helm", "upgrade", "--version", "1.2.3", "--help", "--", "-v"];
        let parsed = Cli::try_parse_from(["capasg", "exec-child"].iter().chain(&child)).unwrap().command;
        let Command::ExecChild(args) = parsed else { unreachable!("the arguments are of a child") };
        assert_eq!(args.arguments, child);
    }

    #[test]
    fn a_diff_takes_files_and_no_flags_of_the_controllers() {
        let parse = |flags: &[&str]| Cli::try_parse_from(["capasg", "addons"].iter().chain(flags));
        let flags = ["diff", "-f", "a.yaml", "-f", "-", "-n", "teams", "--manifests", "--helm=/usr/bin/helm"];
        let Command::Addons(command) = parse(&flags).unwrap().command else {
            unreachable!("they are of diff")
        };
        let Some(AddonsAction::Diff(args)) = command.action else { unreachable!("they are of diff") };
        assert_eq!((args.files.len(), args.manifests), (2, true));
        assert_eq!(args.charts.helm, PathBuf::from("/usr/bin/helm"));
        assert!(parse(&["--concurrency=2", "diff"]).is_err());
    }
}
