//! The instance refreshes of groups: read when a decision needs them, kept for as long as the caller accepts, and dropped
//! as soon as we write.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use crate::{
    Clock, Gateway, InstanceRefresh, Result, Write,
    inventory::{cadence::Cadence, failed_read::FailedRead},
};

/// The refreshes of a group as last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefreshesView {
    /// Newest first.
    pub refreshes: Arc<Vec<InstanceRefresh>>,
    /// When the request started.
    pub as_of: DateTime<Utc>,
}

/// What was read, by group.
#[derive(Debug, Default)]
pub(super) struct RefreshesTable(Mutex<BTreeMap<String, Entry>>);

#[derive(Debug, Default)]
struct Entry {
    /// What was read, and when the request started.
    read: Option<(RefreshesView, Instant)>,
    failed: Option<FailedRead>,
}

impl RefreshesTable {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn known(&self, group: &str) -> Option<RefreshesView> {
        self.lock().get(group)?.read.as_ref().map(|(view, _)| view.clone())
    }

    pub(super) async fn get(
        &self,
        clock: &dyn Clock,
        gateway: &Gateway,
        cadence: &Cadence,
        group: &str,
        max_age: Duration,
    ) -> Result<RefreshesView> {
        let (now, as_of) = (Instant::now(), clock.now());
        if let Some(entry) = self.lock().get(group) {
            if let Some((view, _)) = entry.read.as_ref().filter(|(_, at)| now < *at + max_age) {
                return Ok(view.clone());
            }
            if let Some(failed) = entry.failed.as_ref().filter(|failed| failed.is_kept(now)) {
                tracing::trace!("instance refreshes are not read again yet");
                return Err(failed.error().clone());
            }
        }
        let answer = gateway.instance_refreshes(group).await;
        let mut table = self.lock();
        let entry = table.entry(group.to_owned()).or_default();
        match answer {
            Ok(refreshes) => {
                let view = RefreshesView { refreshes: Arc::new(refreshes), as_of };
                *entry = Entry { read: Some((view.clone(), now)), failed: None };
                Ok(view)
            }
            Err(error) => {
                let failed = FailedRead::after(entry.failed.as_ref(), error.clone(), cadence, Instant::now());
                entry.failed = Some(failed);
                Err(error)
            }
        }
    }

    /// Our write may have changed them, or met one that is not known.
    pub(super) fn invalidate(&self, write: &Write) {
        let group = match write {
            Write::StartInstanceRefresh(start) => &start.group,
            Write::CreateGroup(create) => &create.name,
            Write::CancelInstanceRefresh { group }
            | Write::RollbackInstanceRefresh { group }
            | Write::DeleteGroup { group, .. } => group,
            _ => return,
        };
        self.forget(group);
    }

    /// Reads again what failed: AWS is reachable again.
    pub(super) fn retry(&self) {
        FailedRead::expire(self.lock().values_mut().map(|entry| &mut entry.failed));
    }

    pub(super) fn forget(&self, group: &str) {
        self.lock().remove(group);
    }
}
