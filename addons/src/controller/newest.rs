//! The newest version of a chart that a spec allows, read from the repository at intervals.

use chrono::{DateTime, TimeDelta, Utc};

use super::context::{Context, Newest, Remembered};
use crate::{
    HelmReleaseProxySpec,
    decide::release::is_exact,
    helm::{HelmError, Operation, Source},
};

/// How often a repository is read for a release.
const INTERVAL: TimeDelta = TimeDelta::minutes(10);

/// The newest version; none if the spec names an exact one. A repository that cannot be read leaves the version that is known:
/// the release stays as it is.
pub(super) async fn of(
    context: &Context,
    spec: &HelmReleaseProxySpec,
    source: &Source,
    remembered: &mut Remembered,
    now: DateTime<Utc>,
) -> Option<String> {
    if is_exact(&spec.version) {
        return None;
    }
    let known = remembered.newest.take().filter(|known| known.of == spec.version);
    let newest = match known {
        Some(known) if now < known.at + INTERVAL => known,
        known => {
            let read = read(context, source).await.ok();
            let version = read.or_else(|| known.and_then(|known| known.version));
            Newest { of: spec.version.clone(), version, at: now }
        }
    };
    let version = newest.version.clone();
    remembered.newest = Some(newest);
    version
}

async fn read(context: &Context, source: &Source) -> Result<String, HelmError> {
    let pulled = Operation::begin(&context.helm)?.pull(source).await?;
    Ok(pulled.version)
}
