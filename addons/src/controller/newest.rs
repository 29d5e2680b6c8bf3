//! The newest version of a chart that a spec allows, read from the repository at intervals for all releases of the chart.

use chrono::{DateTime, TimeDelta, Utc};

use super::context::Context;
use crate::{
    decide::release::is_exact,
    helm::{HelmError, Operation, Source},
};

/// How often a repository is read for a chart.
const INTERVAL: TimeDelta = TimeDelta::minutes(10);
/// How long the version of a chart that no release has any longer is remembered.
const UNUSED: TimeDelta = TimeDelta::hours(1);

/// The newest version in a repository.
pub(super) struct Newest {
    source: Source,
    /// None if the repository could not be read.
    version: Option<String>,
    /// When the repository was read.
    at: DateTime<Utc>,
}

/// The newest version; none if the source names an exact one. A repository that cannot be read leaves the version that is known:
/// the release stays as it is.
pub(super) async fn of(context: &Context, source: &Source, now: DateTime<Utc>) -> Option<String> {
    if source.version.as_ref().is_some_and(|version| is_exact(version.as_str())) {
        return None;
    }
    let known = {
        let mut all = context.newest();
        all.retain(|known| now < known.at + UNUSED);
        let known = all.iter_mut().find(|known| known.source == *source);
        match known {
            Some(known) if now < known.at + INTERVAL => return known.version.clone(),
            Some(known) => {
                // Other releases of the chart use what is known meanwhile.
                known.at = now;
                known.version.clone()
            }
            None => None,
        }
    };
    let version = read(context, source).await.ok().or(known);
    let mut all = context.newest();
    all.retain(|known| known.source != *source);
    all.push(Newest { source: source.clone(), version: version.clone(), at: now });
    version
}

async fn read(context: &Context, source: &Source) -> Result<String, HelmError> {
    let pulled = Operation::begin(&context.helm)?.pull(source).await?;
    Ok(pulled.version)
}
