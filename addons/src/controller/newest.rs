//! The newest version of a chart that a spec allows, read from the repository at intervals for all releases of the chart.

use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    decide::release::is_exact,
    helm::{Helm, HelmError, Operation, Source},
};

/// How often a repository is read for a chart.
const INTERVAL: TimeDelta = TimeDelta::minutes(10);
/// How long the version of a chart that no release has any longer is remembered.
const UNUSED: TimeDelta = TimeDelta::hours(1);

/// The newest versions in repositories.
#[derive(Default)]
pub(super) struct Newest(Mutex<Vec<Known>>);

struct Known {
    source: Source,
    /// None if the repository could not be read.
    version: Option<String>,
    /// When the repository was read.
    at: DateTime<Utc>,
}

impl Newest {
    /// The newest version; none if the source names an exact one. A repository that cannot be read leaves the version that is
    /// known: the release stays as it is.
    pub(super) async fn of(&self, helm: &Helm, source: &Source, now: DateTime<Utc>) -> Option<String> {
        if source.version.as_ref().is_some_and(|version| is_exact(version.as_str())) {
            return None;
        }
        let known = {
            let mut all = self.lock();
            all.retain(|known| now < known.at + UNUSED);
            match all.iter_mut().find(|known| known.source == *source) {
                Some(known) if now < known.at + INTERVAL => return known.version.clone(),
                Some(known) => {
                    // Other releases of the chart use what is known meanwhile.
                    known.at = now;
                    known.version.clone()
                }
                None => None,
            }
        };
        let version = read(helm, source).await.ok().or(known);
        let mut all = self.lock();
        all.retain(|known| known.source != *source);
        all.push(Known { source: source.clone(), version: version.clone(), at: now });
        version
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn read(helm: &Helm, source: &Source) -> Result<String, HelmError> {
    let pulled = Operation::begin(helm)?.pull(source).await?;
    Ok(pulled.version)
}
