//! How pods get credentials, and what follows from that.

use anyhow::Result;
use serde_json::Value;

use super::{
    trust::{self, Source},
    usage::Usage,
};
use crate::cli::IamPrintArgs;

/// What documents are made of besides what pools use.
pub struct Parts<'a> {
    /// The flags.
    pub args: &'a IamPrintArgs,
    source: Option<Source>,
}

impl<'a> Parts<'a> {
    /// The parts that flags choose.
    ///
    /// # Errors
    /// If the account of an OIDC provider is not known.
    pub fn of(args: &'a IamPrintArgs, usage: &Usage) -> Result<Self> {
        let source = match (&args.oidc_provider, &args.pod_identity_cluster) {
            (Some(provider), _) => Some(Source::oidc(usage, provider)?),
            (None, Some(_)) => Some(Source::PodIdentity),
            (None, None) => None,
        };
        Ok(Self { args, source })
    }

    /// The trust policy of the role of the manager, if it is known how its pod gets credentials.
    #[must_use]
    pub fn manager_trust(&self) -> Option<Value> {
        self.trust(&self.args.manager_namespace, "capasg-manager")
    }

    /// The same of the Runtime Extension.
    #[must_use]
    pub fn extension_trust(&self) -> Option<Value> {
        self.trust(&self.args.extension_namespace, "capasg-extension")
    }

    fn trust(&self, namespace: &str, service_account: &str) -> Option<Value> {
        let source = self.source.as_ref()?;
        Some(trust::of_service_account(source, namespace, service_account))
    }
}

/// Why there is no trust policy.
pub const NO_TRUST: &str = "pass --oidc-provider or --pod-identity-cluster for a trust policy";
