//! What pools use in AWS, as far as policies can be restricted to it.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};

use crate::cli::{IamPrintArgs, Partition};

/// What pools use. An empty set restricts nothing, unless its member says otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// The partition of ARNs; any if it is absent.
    pub partition: Option<Partition>,
    /// 12 digits; any if it is absent.
    pub account: Option<String>,
    /// Regions of pools.
    pub regions: BTreeSet<String>,
    /// Namespaces of pools.
    pub namespaces: BTreeSet<String>,
    /// Names or ARNs of the roles of instance profiles. Without one no role can be passed.
    pub roles: BTreeSet<String>,
    /// Names, URLs or ARNs of event queues.
    pub queues: Used,
    /// Names or ARNs of SSM parameters.
    pub parameters: Used,
    /// ARNs of customer managed keys. Without one no key policy is required.
    pub keys: BTreeSet<String>,
    /// Whether groups without tags of a pool are adopted.
    pub adopts: bool,
    /// Roles that the manager assumes.
    pub identities: Vec<Identity>,
}

/// Resources of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Used {
    /// It is not known which.
    #[default]
    Any,
    /// These, which may be none.
    Only(BTreeSet<String>),
}

/// A role that the manager assumes for some pools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its ARN.
    pub role: String,
    /// The external ID that its trust policy requires.
    pub external_id: Option<String>,
}

impl Usage {
    /// What flags say.
    ///
    /// # Errors
    /// If a flag has an invalid value, or the partition is not that of a Region.
    pub fn of_flags(args: &IamPrintArgs) -> Result<Self> {
        let set = |values: &[String]| -> BTreeSet<String> { values.iter().cloned().collect() };
        let used = |values: &[String]| if values.is_empty() { Used::Any } else { Used::Only(set(values)) };
        let usage = Self {
            partition: args.partition,
            account: args.account.clone(),
            regions: set(&args.region),
            namespaces: set(&args.namespace),
            roles: set(&args.role),
            queues: used(&args.queue),
            parameters: used(&args.parameter),
            keys: set(&args.kms_key),
            adopts: args.adoption,
            identities: args.assume_role.iter().map(|text| identity(text)).collect::<Result<_>>()?,
        };
        for key in &usage.keys {
            ensure!(key.starts_with("arn:"), "--kms-key: {key} is not an ARN");
        }
        usage.with_partition()
    }

    /// Determines the partition from the Regions, if no flag did.
    ///
    /// # Errors
    /// If Regions are of different partitions: one role cannot be used in both.
    pub fn with_partition(mut self) -> Result<Self> {
        for region in &self.regions {
            let own = Partition::of(region);
            match self.partition {
                None => self.partition = Some(own),
                Some(partition) if partition != own => {
                    bail!("the Region {region} is not in the partition {}", partition.as_str())
                }
                Some(_) => {}
            }
        }
        Ok(self)
    }

    /// The partition in ARNs.
    #[must_use]
    pub fn partition(&self) -> &'static str {
        self.partition.map_or("*", Partition::as_str)
    }

    /// The ARN of a regional resource. Several Regions are a wildcard here, and a condition ([`Self::several_regions`]): one
    /// ARN for each would exceed the size of a policy.
    #[must_use]
    pub fn arn(&self, service: &str, resource: &str) -> String {
        self.arn_of(service, self.account.as_deref().unwrap_or("*"), resource)
    }

    /// The same with another account, which may be empty.
    #[must_use]
    pub fn arn_of(&self, service: &str, account: &str, resource: &str) -> String {
        let mut regions = self.regions.iter();
        let region = match (regions.next(), regions.next()) {
            (Some(only), None) => only,
            _ => "*",
        };
        format!("arn:{}:{service}:{region}:{account}:{resource}", self.partition())
    }

    /// The Regions, if ARNs do not name them.
    #[must_use]
    pub fn several_regions(&self) -> Option<&BTreeSet<String>> {
        (self.regions.len() > 1).then_some(&self.regions)
    }

    /// The ARN of a role by its name, which may have a path; an ARN is returned as it is.
    #[must_use]
    pub fn role_arn(&self, role: &str) -> String {
        if role.starts_with("arn:") {
            return role.to_owned();
        }
        let account = self.account.as_deref().unwrap_or("*");
        format!("arn:{}:iam::{account}:role/{}", self.partition(), role.trim_start_matches('/'))
    }
}

/// `ARN` or `ARN=EXTERNAL-ID`.
fn identity(text: &str) -> Result<Identity> {
    let (role, external_id) = match text.split_once('=') {
        Some((role, id)) => (role, Some(id.to_owned())),
        None => (text, None),
    };
    ensure!(
        role.starts_with("arn:") && role.contains(":role/"),
        "--assume-role: {role} is not the ARN of a role"
    );
    Ok(Identity { role: role.to_owned(), external_id })
}
