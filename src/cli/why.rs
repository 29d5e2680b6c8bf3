//! The arguments of `capasg why`.

use std::{path::PathBuf, str::FromStr};

use clap::Args;

/// Arguments of `capasg why`.
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// The object: `cluster/NAME`, `machinepool/NAME` or `asgmachinepool/NAME`. A name without a kind is that of a Cluster;
    /// if there is none, of a MachinePool or an ASGMachinePool.
    #[arg(value_name = "[KIND/]NAME")]
    pub target: WhyTarget,

    /// Namespace of the object. Defaults to the one of the kubeconfig's current context.
    #[arg(short, long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// Kubeconfig of the management cluster. Defaults to `KUBECONFIG` or `~/.kube/config`.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Print the console output of this instance of the pool as well. It is read with your AWS credentials, which require the
    /// permissions ec2:GetConsoleOutput and ec2:DescribeInstanceAttribute; bootstrap tokens, keys and user data in it are
    /// masked, and it is not stored.
    #[arg(long, value_name = "INSTANCE")]
    pub console: Option<String>,
}

/// The object that is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhyTarget {
    /// Its kind, if it is named.
    pub kind: Option<WhyKind>,
    /// Its name.
    pub name: String,
}

/// The kinds of objects that can be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyKind {
    /// A Cluster of Cluster API.
    Cluster,
    /// A MachinePool of Cluster API, whose infrastructure is an `ASGMachinePool`.
    MachinePool,
    /// An `ASGMachinePool`.
    Pool,
}

impl FromStr for WhyTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, name) = match text.split_once('/') {
            None => (None, text),
            Some((kind, name)) => (Some(kind), name),
        };
        let kind = match kind.map(str::to_ascii_lowercase).as_deref() {
            None => None,
            Some("cluster" | "clusters" | "cl") => Some(WhyKind::Cluster),
            Some("machinepool" | "machinepools" | "mp") => Some(WhyKind::MachinePool),
            Some("asgmachinepool" | "asgmachinepools" | "asgmp") => Some(WhyKind::Pool),
            Some(other) => {
                return Err(format!("kind {other:?} is not one of cluster, machinepool, asgmachinepool"));
            }
        };
        if name.is_empty() {
            return Err("the name is missing".to_owned());
        }
        Ok(Self { kind, name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_name_with_or_without_a_kind() {
        let parse = |text: &str| text.parse::<WhyTarget>().map(|target| (target.kind, target.name));
        assert_eq!(parse("prod"), Ok((None, "prod".to_owned())));
        assert_eq!(parse("Cluster/prod"), Ok((Some(WhyKind::Cluster), "prod".to_owned())));
        assert_eq!(parse("mp/workers"), Ok((Some(WhyKind::MachinePool), "workers".to_owned())));
        assert_eq!(parse("asgmachinepools/workers"), Ok((Some(WhyKind::Pool), "workers".to_owned())));
        assert!(parse("machine/m-1").unwrap_err().contains("machinepool, asgmachinepool"));
        assert!(parse("cluster/").is_err());
    }
}
