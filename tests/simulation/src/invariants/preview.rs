//! A preview only shows: nothing is written to the cloud but sizes, ends and tokens. A pool that is orphaned leaves
//! everything there as it is.

use capasg_api::pool::DeletionPolicy;
use capasg_cloud::Write;
use chrono::{DateTime, Utc};

use super::state::{Inner, Invariants};

impl Invariants {
    /// While changes are only shown, nothing of the cloud is changed but sizes, ends and tokens.
    ///
    /// Exempt: a pool that is being deleted; launches that AWS suspended, which are resumed for another
    /// `spec.retryToken` (docs/users/drift.md, "Preview changes").
    pub(super) fn a_preview_changes_nothing(inner: &mut Inner, now: DateTime<Utc>, write: &Write) {
        let is_retried = inner.begun.object.as_ref().is_some_and(|own| own.spec.retry_token.is_some());
        let resumes = is_retried && matches!(write, Write::ResumeProcesses { .. });
        if inner.begun.previews() && !resumes && !inner.preview.lets_through(write, now) {
            inner.breaks(now, "a_preview_changes_nothing", format!("{write:?}"));
        }
        inner.preview.keep(write);
    }

    /// The deletion of a pool that is to be orphaned takes our hook off its group, cancels a refresh of ours, which would
    /// go on without it, and completes terminations that began before, which heartbeats hold until their nodes are drained;
    /// nothing else.
    pub(super) fn orphans_are_left_alone(inner: &mut Inner, now: DateTime<Utc>, write: &Write) {
        let orphans = inner.begun.object.as_ref().is_some_and(|own| {
            own.metadata.deletion_timestamp.is_some() && own.spec.deletion_policy() == DeletionPolicy::Orphan
        });
        let lets_go = matches!(
            write,
            Write::DeleteLifecycleHook { .. }
                | Write::CancelInstanceRefresh { .. }
                | Write::CompleteLifecycleAction { .. }
                | Write::RecordLifecycleActionHeartbeat { .. }
        );
        if orphans && !lets_go {
            inner.breaks(now, "orphans_are_left_alone", write.api().to_owned());
        }
    }
}
