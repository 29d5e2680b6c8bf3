//! Archives of charts in `ConfigMaps` and Secrets. The content is read when it has changed, and for an operation; only its
//! version and digest are remembered.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, ResourceExt as _, core::PartialObjectMeta};

use super::{Context, ObjectKey, ReconcileError, context::KnownArchive};
use crate::{
    HelmChartProxy,
    decide::{ArchivedChart, Chart, LocalKind, LocalReference, archive_reference},
    helm::{Archive, ChartName, HelmError, InvalidName, Operation, Version},
    names::ARCHIVE_KEY,
};

/// An object with an archive.
struct Stored {
    version: Option<String>,
    content: Option<Vec<u8>>,
}

/// Where the chart of a `HelmChartProxy` is. An archive is validated by Helm once for each content.
pub(super) async fn of(context: &Context, proxy: &HelmChartProxy) -> Result<Chart, ReconcileError> {
    let key = ObjectKey::new(proxy.namespace().unwrap_or_default(), proxy.name_any());
    let named = archive_reference(proxy.annotations());
    let named =
        named.map(|reference| Ok((reference?, ChartName::parse(&proxy.spec.chart_name)?))).transpose();
    let (reference, name) = match named {
        Ok(Some(both)) => both,
        other => {
            context.forget_archive(&key);
            return Ok(other.map_or_else(
                |invalid: InvalidName| Chart::NotAvailable(invalid.to_string()),
                |_| Chart::InRepository,
            ));
        }
    };
    let known =
        context.known_archive(&key).filter(|known| known.reference == reference && known.name == name);
    if let Some(known) = known
        && known.version.is_some()
        && version(context, &key.namespace, &reference).await? == known.version
    {
        return Ok(known.chart);
    }
    let stored = read(context, &key.namespace, &reference).await?;
    let version = stored.as_ref().and_then(|stored| stored.version.clone());
    let archive = match content(stored, &reference) {
        Ok(archive) => archive,
        Err(why) => return Ok(Chart::NotAvailable(why)),
    };
    let chart = match inspect(context, &name, &archive).await {
        Ok(chart) => Chart::Archived(chart),
        // What Helm reports of the archive lasts until the object changes; other errors do not.
        Err(error) => {
            let chart = Chart::NotAvailable(format!("{reference}: {error}"));
            if !matches!(error, HelmError::Failed { .. } | HelmError::OtherChart { .. }) {
                return Ok(chart);
            }
            chart
        }
    };
    context.know_archive(key, KnownArchive { reference, name, version, chart: chart.clone() });
    Ok(chart)
}

/// The archive with this digest, for an operation; or the reason and the message of the failure.
pub(super) async fn with_digest(
    context: &Context,
    namespace: &str,
    reference: &LocalReference,
    digest: &str,
) -> Result<Archive, (&'static str, String)> {
    let missing = |why: String| ("ChartArchiveMissing", why);
    let stored = read(context, namespace, reference).await.map_err(|error| missing(error.to_string()))?;
    let archive = content(stored, reference).map_err(missing)?;
    if archive.digest() == digest {
        return Ok(archive);
    }
    let message = format!(
        "{reference} has another content than this release is to have; the HelmChartProxy passes it on in its order"
    );
    Err(("ChartArchiveChanged", message))
}

async fn inspect(context: &Context, name: &ChartName, archive: &Archive) -> Result<ArchivedChart, HelmError> {
    let metadata = Operation::begin(&context.helm)?.unpack(name, archive).await?;
    let chart = ArchivedChart { version: metadata.version, digest: archive.digest() };
    Version::parse(&chart.version_in_spec())?;
    Ok(chart)
}

fn content(stored: Option<Stored>, reference: &LocalReference) -> Result<Archive, String> {
    let place = match reference.kind {
        LocalKind::ConfigMap => "binaryData",
        LocalKind::Secret => "data",
    };
    let stored = stored.ok_or_else(|| {
        format!("{reference} does not exist in the namespace of the HelmChartProxy; create it with the archive in {ARCHIVE_KEY} of {place}")
    })?;
    stored.content.map(Archive).ok_or_else(|| format!("{reference} has no key {ARCHIVE_KEY} in {place}"))
}

async fn version(
    context: &Context,
    namespace: &str,
    reference: &LocalReference,
) -> Result<Option<String>, ReconcileError> {
    let (client, name) = (context.client.clone(), reference.name.as_str());
    let version = match reference.kind {
        LocalKind::ConfigMap => {
            Api::<ConfigMap>::namespaced(client, namespace).get_metadata_opt(name).await.map(version_of)
        }
        LocalKind::Secret => {
            Api::<Secret>::namespaced(client, namespace).get_metadata_opt(name).await.map(version_of)
        }
    };
    version.map_err(|source| ReconcileError::Read { what: "the metadata of a chart archive", source })
}

fn version_of<K>(found: Option<PartialObjectMeta<K>>) -> Option<String> {
    found?.metadata.resource_version
}

async fn read(
    context: &Context,
    namespace: &str,
    reference: &LocalReference,
) -> Result<Option<Stored>, ReconcileError> {
    let (client, name) = (context.client.clone(), reference.name.as_str());
    let stored = match reference.kind {
        LocalKind::ConfigMap => {
            let found = Api::<ConfigMap>::namespaced(client, namespace).get_opt(name).await;
            found.map(|found| found.map(|found| (found.metadata, found.binary_data)))
        }
        LocalKind::Secret => {
            let found = Api::<Secret>::namespaced(client, namespace).get_opt(name).await;
            found.map(|found| found.map(|found| (found.metadata, found.data)))
        }
    };
    let stored = stored.map_err(|source| ReconcileError::Read { what: "a chart archive", source })?;
    Ok(stored.map(|(metadata, data)| Stored {
        version: metadata.resource_version,
        content: data.unwrap_or_default().remove(ARCHIVE_KEY).map(|content| content.0),
    }))
}
