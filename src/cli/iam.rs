//! The arguments of `capasg iam`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Arguments of `capasg iam`.
#[derive(Debug, Args)]
pub struct IamCommand {
    /// What to do.
    #[command(subcommand)]
    pub action: IamAction,
}

/// What `capasg iam` does.
#[derive(Debug, Subcommand)]
pub enum IamAction {
    /// Print the permissions in AWS that CAPASG requires; no call to AWS is made.
    Print(Box<IamPrintArgs>),
}

/// Arguments of `capasg iam print`.
#[derive(Debug, Args)]
pub struct IamPrintArgs {
    /// What to print with `--output=json`.
    #[arg(long, value_name = "DOCUMENT", default_value = "manager-policy")]
    pub document: IamDocument,

    /// `json` prints one document; `aws-cli` prints the commands that create all of them.
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    pub output: IamOutput,

    /// Partition of the ARNs. Defaults to the one of the Regions, or to any.
    #[arg(long, value_name = "PARTITION")]
    pub partition: Option<Partition>,

    /// Account of the pools, 12 digits. Defaults to any.
    #[arg(long, value_name = "ACCOUNT", value_parser = account)]
    pub account: Option<String>,

    /// Region of pools; repeat the flag for several. Defaults to any.
    #[arg(long, value_name = "REGION", value_delimiter = ',')]
    pub region: Vec<String>,

    /// Namespace of pools, which their groups and launch templates have as a tag; repeat the flag for several. Defaults to any.
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    pub namespace: Vec<String>,

    /// Name or ARN of the role of an instance profile of nodes; repeat the flag for several. Without one, the statement that
    /// passes roles is omitted.
    #[arg(long, value_name = "ROLE", value_delimiter = ',')]
    pub role: Vec<String>,

    /// Name, URL or ARN of an event queue; repeat the flag for several. Defaults to names that begin with `capasg`.
    #[arg(long, value_name = "QUEUE", value_delimiter = ',')]
    pub queue: Vec<String>,

    /// Name or ARN of an SSM parameter with the ID of an image; repeat the flag for several. Defaults to any.
    #[arg(long, value_name = "PARAMETER", value_delimiter = ',')]
    pub parameter: Vec<String>,

    /// ARN of a customer managed key that encrypts volumes; repeat the flag for several.
    #[arg(long, value_name = "ARN", value_delimiter = ',')]
    pub kms_key: Vec<String>,

    /// Allow the adoption of groups, which do not have the tags of a pool yet.
    #[arg(long)]
    pub adoption: bool,

    /// ARN of a role that the manager assumes for pools of an identity, with its external ID; repeat the flag for several.
    #[arg(long, value_name = "ARN[=EXTERNAL-ID]", value_delimiter = ',')]
    pub assume_role: Vec<String>,

    /// Name of the role of the manager.
    #[arg(long, value_name = "NAME", default_value = "capasg-manager")]
    pub manager_role: String,

    /// Name of the role of the Runtime Extension.
    #[arg(long, value_name = "NAME", default_value = "capasg-extension")]
    pub extension_role: String,

    /// OIDC provider of the management cluster, for IAM roles for service accounts: its issuer URL, or its ARN.
    #[arg(long, value_name = "URL", conflicts_with = "pod_identity_cluster")]
    pub oidc_provider: Option<String>,

    /// Name of the management cluster in EKS, for EKS Pod Identity.
    #[arg(long, value_name = "NAME")]
    pub pod_identity_cluster: Option<String>,

    /// Namespace of the manager.
    #[arg(long, value_name = "NAMESPACE", default_value = "capasg-system")]
    pub manager_namespace: String,

    /// Namespace of the Runtime Extension.
    #[arg(long, value_name = "NAMESPACE", default_value = "capasg-extension-system")]
    pub extension_namespace: String,

    /// Read the ASGMachinePools of the management cluster, and the event queue of the manager, and print what they use:
    /// Regions, namespaces, instance profiles, parameters, keys.
    #[arg(long)]
    pub from_cluster: bool,

    /// Print what the role of this ASGIdentity requires for the pools that use it, with `--from-cluster`. Defaults to the
    /// pools that use the credentials of the manager.
    #[arg(long, value_name = "NAME", requires = "from_cluster")]
    pub identity: Option<String>,

    /// Kubeconfig of the management cluster, for `--from-cluster`. Defaults to `KUBECONFIG` or `~/.kube/config`.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

/// What `capasg iam print` prints as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IamDocument {
    /// The policy of the manager, and of roles that it assumes.
    ManagerPolicy,
    /// The policy of the Runtime Extension.
    ExtensionPolicy,
    /// The trust policy of the role of the manager.
    ManagerTrust,
    /// The trust policy of the role of the Runtime Extension.
    ExtensionTrust,
    /// The trust policy of each role that the manager assumes, by ARN.
    IdentityTrust,
    /// The statements that the policy of a customer managed key requires.
    KeyPolicy,
}

/// How `capasg iam print` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IamOutput {
    /// One document.
    Json,
    /// Commands of the AWS CLI.
    AwsCli,
}

/// A partition of AWS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Partition {
    /// The standard Regions.
    Aws,
    /// `GovCloud` (US).
    AwsUsGov,
    /// The Regions in China.
    AwsCn,
}

impl Partition {
    /// The name in ARNs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::AwsUsGov => "aws-us-gov",
            Self::AwsCn => "aws-cn",
        }
    }

    /// The partition of a Region.
    #[must_use]
    pub fn of(region: &str) -> Self {
        if region.starts_with("us-gov-") {
            Self::AwsUsGov
        } else if region.starts_with("cn-") {
            Self::AwsCn
        } else {
            Self::Aws
        }
    }
}

fn account(text: &str) -> Result<String, String> {
    let is_account = text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_account { Ok(text.to_owned()) } else { Err("an account has 12 digits".to_owned()) }
}
