//! The arguments of `capasg addons`, and those of the role that starts its child processes.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use anyhow::{Result, ensure};
use clap::{ArgAction, Args};

use super::{EndpointArgs, LeaderElection, LoggingFormat, duration};

/// Arguments of `capasg addons`. Durations are written as in Go: `300ms`, `15s`, `1h30m`.
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
    /// up to 100 MB of memory.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrency: u16,

    /// How many releases of one Cluster are reconciled at the same time.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub cluster_concurrency: u16,

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
            Command::Addons(args) => Ok(*args),
            _ => unreachable!("the arguments are of the add-on provider"),
        }
    }

    #[test]
    fn what_weakens_the_isolation_is_off_by_default() {
        let args = parse(&[]).unwrap();
        assert!(!args.allow_http_repositories && !args.allow_secrets_of_other_namespaces);
        assert!(!args.leader_election.leader_elect);
        args.validate().unwrap();
        let args = parse(&["--allow-http-repositories", "--allow-secrets-of-other-namespaces=true"]).unwrap();
        assert!(args.allow_http_repositories && args.allow_secrets_of_other_namespaces);
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
}
