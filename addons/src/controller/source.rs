//! Where the chart of a release is, with the credentials and the certificate authority of its repository.

use std::collections::BTreeMap;

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, ResourceExt as _};

use super::{Context, ReconcileError, archive};
use crate::{
    HelmReleaseProxy, HelmReleaseProxySpec,
    decide::{LocalReference, archive_digest, archive_reference},
    helm::{
        Access, ChartName, ChartSource, InvalidName, Repository, RepositoryCredentials, Source, Verification,
        Version,
    },
    kinds::{SecretReference, conditions::reasons},
    names,
};

/// Why there is no source: the reason of a condition and the message.
pub(super) enum NoSource {
    /// A field of the spec is not valid.
    Invalid(InvalidName),
    /// A Secret does not exist or is rejected.
    Secret { reason: &'static str, message: String },
}

/// Where the chart is.
pub(super) enum Place {
    /// In a repository.
    Repository(Source),
    /// In an object, whose content is read for an operation alone.
    Archive { reference: LocalReference, digest: String, chart: ChartName },
}

impl Place {
    /// The digest of the archive.
    pub(super) fn digest(&self) -> Option<&str> {
        match self {
            Self::Repository(_) => None,
            Self::Archive { digest, .. } => Some(digest),
        }
    }

    /// The chart for an operation; or the reason and the message of the failure.
    pub(super) async fn chart(
        &self,
        context: &Context,
        namespace: &str,
    ) -> Result<ChartSource, (&'static str, String)> {
        Ok(match self {
            Self::Repository(source) => ChartSource::Repository(source.clone()),
            Self::Archive { reference, digest, chart } => {
                let archive = archive::with_digest(context, namespace, reference, digest).await?;
                ChartSource::Archive { chart: chart.clone(), archive }
            }
        })
    }
}

/// Where the chart of an object is: in an archive if it names one.
pub(super) async fn of(
    context: &Context,
    object: &HelmReleaseProxy,
) -> Result<Result<Place, NoSource>, ReconcileError> {
    let namespace = object.namespace().unwrap_or_default();
    match archive_reference(object.annotations()) {
        None => Ok(in_repository(context, &namespace, &object.spec).await?.map(Place::Repository)),
        Some(reference) => Ok(in_archive(reference, &object.spec).map_err(NoSource::Invalid)),
    }
}

fn in_archive(
    reference: Result<LocalReference, InvalidName>,
    spec: &HelmReleaseProxySpec,
) -> Result<Place, InvalidName> {
    let rule = "have the digest of the archive, as a HelmChartProxy sets it";
    let digest = archive_digest(&spec.version).ok_or(InvalidName { field: "version", rule })?;
    Ok(Place::Archive {
        reference: reference?,
        digest: digest.to_owned(),
        chart: ChartName::parse(&spec.chart_name)?,
    })
}

/// The source that a spec names. Secrets are read from the namespace of the object alone, unless the operator allows others.
async fn in_repository(
    context: &Context,
    namespace: &str,
    spec: &HelmReleaseProxySpec,
) -> Result<Result<Source, NoSource>, ReconcileError> {
    let names = || {
        let repository = Repository::parse(&spec.repo_url, context.policy.plain_http)?;
        let version = Some(spec.version.as_str()).filter(|version| !version.is_empty());
        Ok((repository, ChartName::parse(&spec.chart_name)?, version.map(Version::parse).transpose()?))
    };
    let (repository, chart, version) = match names() {
        Ok(names) => names,
        Err(invalid) => return Ok(Err(NoSource::Invalid(invalid))),
    };
    let mut access = Access::default();
    if let Some(credentials) = &spec.credentials {
        let reason = reasons::GET_CREDENTIALS_FAILED;
        let key = if credentials.key.is_empty() { names::DEFAULT_CREDENTIALS_KEY } else { &credentials.key };
        let data = match data(context, namespace, &credentials.secret, reason).await? {
            Ok(data) => data,
            Err(no_source) => return Ok(Err(no_source)),
        };
        match RepositoryCredentials::from_secret(&repository, &data, key) {
            Ok(credentials) => access.credentials = Some(credentials),
            Err(error) => return Ok(Err(NoSource::Secret { reason, message: error.to_string() })),
        }
    }
    if let Some(tls) = &spec.tls_config {
        access.verification.is_skipped = tls.insecure_skip_tls_verify;
        if let Some(secret) = &tls.ca_secret {
            let reason = reasons::GET_CA_CERTIFICATE_FAILED;
            let data = match data(context, namespace, secret, reason).await? {
                Ok(data) => data,
                Err(no_source) => return Ok(Err(no_source)),
            };
            let verification = Verification { authority: None, ..access.verification };
            match verification.with_authority(&data) {
                Ok(verification) => access.verification = verification,
                Err(error) => return Ok(Err(NoSource::Secret { reason, message: error.to_string() })),
            }
        }
    }
    Ok(Ok(Source { repository, chart, version, access }))
}

async fn data(
    context: &Context,
    namespace: &str,
    secret: &SecretReference,
    reason: &'static str,
) -> Result<Result<BTreeMap<String, ByteString>, NoSource>, ReconcileError> {
    let is_foreign = !secret.namespace.is_empty() && secret.namespace != namespace;
    if is_foreign && !context.policy.foreign_secrets {
        let message = format!(
            "Secret {} must be in the namespace of the HelmReleaseProxy; other namespaces require a flag of the manager",
            secret.name
        );
        return Ok(Err(NoSource::Secret { reason, message }));
    }
    let namespace = if is_foreign { &secret.namespace } else { namespace };
    let api: Api<Secret> = Api::namespaced(context.client.clone(), namespace);
    let found = api.get_opt(&secret.name).await;
    let found =
        found.map_err(|source| ReconcileError::Read { what: "a Secret of the repository", source })?;
    Ok(found.map(|found| found.data.unwrap_or_default()).ok_or_else(|| NoSource::Secret {
        reason,
        message: format!("Secret {} does not exist", secret.name),
    }))
}
