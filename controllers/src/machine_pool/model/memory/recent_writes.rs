//! The changes of a group that AWS has just made: a read may not show them yet.

use std::collections::BTreeMap;

use capasg_cloud::Write;
use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::model::call_kind::CallKind;

/// A write is not repeated for this long after its answer.
const SETTLES: TimeDelta = TimeDelta::seconds(5);

/// The last write of each kind, and when it was answered.
#[derive(Debug, Clone, Default)]
pub struct RecentWrites(BTreeMap<CallKind, (Write, DateTime<Utc>)>);

impl RecentWrites {
    /// How long the same write must wait.
    #[must_use]
    pub fn wait(&self, write: &Write, now: DateTime<Utc>) -> Option<TimeDelta> {
        let (_, at) = self.0.get(&CallKind::of(write)).filter(|(last, _)| last == write)?;
        Some(*at + SETTLES - now).filter(|wait| *wait > TimeDelta::zero())
    }

    /// AWS made a change. Terminations and lifecycle actions have other intervals, and launch templates are read
    /// without a lag.
    pub(super) fn add(&mut self, write: &Write, now: DateTime<Utc>) {
        match write {
            Write::CreateGroup(_) => self.0.clear(),
            Write::TerminateInstances { .. }
            | Write::CompleteLifecycleAction { .. }
            | Write::RecordLifecycleActionHeartbeat { .. } => {}
            write if write.group().is_some() => {
                self.0.insert(CallKind::of(write), (write.clone(), now));
            }
            _ => {}
        }
    }
}
