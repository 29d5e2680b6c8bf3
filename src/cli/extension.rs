//! The arguments of `capasg extension`.

use std::path::{Path, PathBuf};

use capasg_extensions::{Extension, protocol::Hook};
use clap::{Args, Subcommand};

use super::{EndpointArgs, LoggingFormat};

/// Arguments of `capasg extension`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ExtensionCommand {
    #[command(subcommand)]
    pub action: Option<ExtensionAction>,

    #[command(flatten)]
    pub args: ExtensionArgs,
}

/// What to do instead of running the extension.
#[derive(Debug, Subcommand)]
pub enum ExtensionAction {
    /// Validate the settings of `ExtensionConfig` and `ClusterClass` objects in YAML files.
    CheckSettings(CheckSettingsArgs),
}

/// Arguments of `capasg extension check-settings`.
#[derive(Debug, Args)]
pub struct CheckSettingsArgs {
    /// YAML files, each with one or more objects; `-` reads standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// Arguments of the running extension.
#[derive(Debug, Args)]
pub struct ExtensionArgs {
    /// Port of the hooks (HTTPS).
    #[arg(long, value_name = "PORT", default_value_t = 9443)]
    pub webhook_port: u16,

    /// Directory with `tls.crt` and `tls.key` of the hooks, reloaded when they change.
    #[arg(long, value_name = "DIR", default_value = "/run/capasg/extension")]
    pub webhook_cert_dir: PathBuf,

    /// PEM file with the certificate authorities of clients: only clients with a certificate of one of them are accepted. It is
    /// reloaded when it changes. `none` accepts every client that reaches the port.
    #[arg(long, value_name = "FILE", default_value = "none")]
    pub client_ca_file: PathBuf,

    /// Runtime Hooks to advertise, separated by commas; by default all that are implemented.
    #[arg(long, value_name = "HOOK", value_delimiter = ',')]
    pub hooks: Vec<Hook>,

    /// Version of Cluster API, such as `v1.11`. Hooks that it does not know are not advertised.
    #[arg(long, value_name = "VERSION", value_parser = core_minor)]
    pub core_version: Option<u64>,

    /// The share of the manager's rates of AWS calls that each replica may use, from 0 to 1: hooks read images, instance
    /// types, subnets and security groups. 0 makes no calls, and these checks are omitted.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub aws_api_share: f64,

    /// Namespace of the manager, with the Secrets of ASGIdentities. Checks in AWS use such an identity only if RBAC lets the
    /// extension read its Secret.
    #[arg(long, value_name = "NAMESPACE", default_value = "capasg-system")]
    pub manager_namespace: String,

    /// Namespace of Cluster API Provider AWS, with the Secrets of its static identities.
    #[arg(long, value_name = "NAMESPACE", default_value = "capa-system")]
    pub aws_provider_namespace: String,

    #[command(flatten)]
    pub endpoints: EndpointArgs,

    /// Kubeconfig of the management cluster. Defaults to `KUBECONFIG` or `~/.kube/config`, then to the service account of
    /// the pod.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Log verbosity: 0 logs the lifecycle of the extension, warnings and errors; 2 adds minor failures.
    #[arg(short, long = "v", value_name = "N", default_value_t = 0)]
    pub verbosity: u8,

    /// Format of the log lines on standard error.
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    pub logging_format: LoggingFormat,
}

impl ExtensionArgs {
    /// The file with the certificate authorities of clients, unless every client is accepted.
    #[must_use]
    pub fn client_authorities(&self) -> Option<&Path> {
        Some(self.client_ca_file.as_path()).filter(|file| *file != Path::new("none"))
    }

    /// The hooks to advertise.
    #[must_use]
    pub fn advertised(&self) -> Vec<Hook> {
        let chosen = if self.hooks.is_empty() { Extension::implemented() } else { self.hooks.clone() };
        let known = |hook: &Hook| self.core_version.is_none_or(|minor| hook.since() <= minor);
        chosen.into_iter().filter(known).collect()
    }
}

/// A number from 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("`{text}` is not a number from 0 to 1"))
}

/// The minor version in `v1.11` or `v1.11.4`.
fn core_minor(text: &str) -> Result<u64, String> {
    let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
    match (parts.next(), parts.next().and_then(|minor| minor.parse().ok())) {
        (Some("1"), Some(minor)) => Ok(minor),
        _ => Err(format!("`{text}` is not a version of Cluster API such as v1.14")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    fn parse(flags: &[&str]) -> Result<ExtensionArgs, clap::Error> {
        match Cli::try_parse_from(["capasg", "extension"].iter().chain(flags))?.command {
            Command::Extension(command) => Ok(command.args),
            _ => unreachable!("the arguments are of the extension"),
        }
    }

    // Rules: R12
    #[test]
    fn hooks_are_advertised_as_far_as_core_knows_them() {
        assert_eq!(parse(&[]).unwrap().advertised(), Extension::implemented());
        let older = parse(&["--core-version=v1.11.4"]).unwrap().advertised();
        assert!(older.contains(&Hook::BeforeClusterUpgrade));
        assert!(!older.contains(&Hook::GenerateUpgradePlan) && !older.contains(&Hook::BeforeWorkersUpgrade));
        let some = parse(&["--hooks=BeforeClusterDelete,generateupgradeplan"]).unwrap();
        let some = some.advertised();
        assert_eq!(some, [Hook::BeforeClusterDelete, Hook::GenerateUpgradePlan]);
        for wrong in ["--hooks=UpdateMachine", "--core-version=2.0", "--core-version=v1"] {
            assert!(parse(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn clients_need_a_certificate_if_a_file_with_authorities_is_set() {
        assert_eq!(parse(&[]).unwrap().client_authorities(), None);
        assert_eq!(parse(&["--client-ca-file=none"]).unwrap().client_authorities(), None);
        let args = parse(&["--client-ca-file=/run/capasg/client-ca/ca.crt"]).unwrap();
        assert_eq!(args.client_authorities(), Some(Path::new("/run/capasg/client-ca/ca.crt")));
        assert!(parse(&["--client-ca-file="]).is_err(), "an empty value is a mistake");
    }

    #[test]
    fn aws_is_not_called_unless_a_share_of_its_rates_is_set() {
        let share = |flags: &[&str]| parse(flags).map(|args| args.aws_api_share.to_string()).ok();
        assert_eq!(share(&[]).as_deref(), Some("0"));
        assert_eq!(share(&["--aws-api-share=0.1"]).as_deref(), Some("0.1"));
        for wrong in
            ["--aws-api-share=1.1", "--aws-api-share=-0.1", "--aws-api-share=NaN", "--aws-api-share=half"]
        {
            assert_eq!(share(&[wrong]), None, "{wrong}");
        }
    }

    #[test]
    fn settings_are_checked_instead_of_running() {
        let command =
            Cli::try_parse_from(["capasg", "extension", "check-settings", "a.yaml"]).unwrap().command;
        let Command::Extension(command) = command else { unreachable!("the arguments are of the extension") };
        assert!(
            matches!(command.action, Some(ExtensionAction::CheckSettings(args)) if args.files.len() == 1)
        );
    }
}
