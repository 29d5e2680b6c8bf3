//! One write to AWS: makes it unless it must wait, records the answer, and publishes its event.

use std::{borrow::Cow, collections::BTreeSet};

use capasg_cloud::{CloudError, ErrorClass, Write};
use chrono::TimeDelta;

use crate::ObjectKey;
use crate::kubernetes::KubeError;
use crate::machine_pool::ReconcileError;
use crate::machine_pool::act::{events, execution::Execution};
use crate::machine_pool::model::call_kind::CallKind;
use crate::machine_pool::model::memory::PoolMemory;
use crate::machine_pool::model::memory::record::{Answer, Entry};

/// The result of a write.
pub enum Outcome {
    /// AWS made the change.
    Made,
    /// It is skipped: AWS rejects it, or made the change before.
    Skipped,
    /// It waits: AWS has just made the same change.
    Waits(TimeDelta),
    /// It waits: AWS has failed to make the same change repeatedly.
    Paced(TimeDelta),
    /// AWS has just rejected the content of the launch template that the spec has. The group is to launch the previous
    /// content, with the current bootstrap data.
    RejectsContent,
    /// It is skipped, and so are the later steps of its phase.
    SkipsPhase,
    /// It is skipped, and so are all later steps: the pool is paused.
    Stop,
}

/// Makes a write.
pub async fn write(
    execution: &Execution<'_>,
    write: &Write,
    memory: &mut PoolMemory,
) -> Result<Outcome, ReconcileError> {
    let Execution { context, inventory, observed, plan, retry_key, .. } = execution;
    if execution.is_paused() || is_paused_before_termination(execution, write).await? {
        return Ok(Outcome::Stop);
    }
    let now = context.clock.now();
    if memory.failed_calls.holds(write, retry_key, now) {
        return Ok(rejected(write));
    }
    if !observed.group.is_settled()
        && let Some(wait) = memory.failed_calls.paces(write, now)
    {
        return Ok(Outcome::Paced(wait));
    }
    if let Some(wait) = memory.recent_writes.wait(write, now) {
        return Ok(Outcome::Waits(wait));
    }
    memory.record(Entry::Issued(write), now);
    let result = inventory.write(write).await;
    let now = context.clock.now();
    match result {
        Ok(_) => {
            let undrained = released_undrained(execution, write, memory);
            let answer = Answer::Made { adopts: plan.adopts(write) };
            memory.record(Entry::Answered { write, answer }, now);
            if let Some(instance) = undrained {
                events::drain_timed_out(execution, instance).await;
            }
            events::made(execution, write, memory).await;
            Ok(Outcome::Made)
        }
        Err(error) if is_done_already(write, &error) => {
            memory.record(Entry::Answered { write, answer: Answer::NothingLeft }, now);
            Ok(Outcome::Skipped)
        }
        Err(error) => {
            let is_rejected = is_rejection(write, &error);
            let is_new = memory.failed_calls.is_new(write, &error, is_rejected, now);
            let answer = if is_rejected {
                Answer::Rejected { error: &error, retry_key }
            } else {
                Answer::Failed(&error)
            };
            memory.record(Entry::Answered { write, answer }, now);
            if is_new {
                events::failed(execution, write, &error, is_rejected).await;
            }
            if !is_rejected {
                return Err(ReconcileError::Cloud(error));
            }
            tracing::warn!(api = error.api, code = %error.code, error_message = %error.message, "AWS rejected a call");
            let is_of_spec = CallKind::of(write).is_of_launch_content() && !plan.launches_previous;
            Ok(if is_of_spec { Outcome::RejectsContent } else { rejected(write) })
        }
    }
}

/// The write without these instances, whose termination could not be recorded; `None` if it names no other.
pub fn without<'a>(write: &'a Write, unrecorded: &BTreeSet<&String>) -> Option<Cow<'a, Write>> {
    let Write::TerminateInstances { group, instances, decrement } = write else {
        return Some(Cow::Borrowed(write));
    };
    if unrecorded.is_empty() {
        return Some(Cow::Borrowed(write));
    }
    let instances: BTreeSet<_> = instances.iter().filter(|id| !unrecorded.contains(id)).cloned().collect();
    (!instances.is_empty()).then(|| {
        Cow::Owned(Write::TerminateInstances { group: group.clone(), instances, decrement: *decrement })
    })
}

/// Whether a write changes the launch template, so that its effect is known at once.
pub fn is_launch_template(write: &Write) -> bool {
    matches!(
        write,
        Write::CreateLaunchTemplate { .. }
            | Write::CreateLaunchTemplateVersion { .. }
            | Write::DeleteLaunchTemplate { .. }
    )
}

/// A termination cannot be undone, and a move does not wait for one that starts after the move has begun: before one,
/// the API server itself is read for whether the Cluster is paused, since a cache may lag (M8).
async fn is_paused_before_termination(execution: &Execution<'_>, write: &Write) -> Result<bool, KubeError> {
    let Execution { context, objects, .. } = execution;
    let Some(cluster) = &objects.cluster else { return Ok(false) };
    if !matches!(write, Write::TerminateInstances { .. }) {
        return Ok(false);
    }
    let live = context.kubernetes.get_cluster(&ObjectKey::of(cluster.as_ref())).await?;
    Ok(live.is_some_and(|cluster| cluster.is_paused()))
}

/// The result of a rejection. What follows the creation of a group in its phase requires the group.
fn rejected(write: &Write) -> Outcome {
    if matches!(write, Write::CreateGroup(_)) { Outcome::SkipsPhase } else { Outcome::Skipped }
}

/// Whether the error is a rejection, which only a user's action or time changes. So is a missing resource, unless the
/// call terminates instances.
fn is_rejection(write: &Write, error: &CloudError) -> bool {
    let terminates = matches!(write, Write::TerminateInstances { .. });
    error.class.is_permanent() || (error.class == ErrorClass::NotFound && !terminates)
}

/// Whether the error shows that the change was made before.
fn is_done_already(write: &Write, error: &CloudError) -> bool {
    error.class == ErrorClass::NotFound
        && matches!(
            write,
            Write::CompleteLifecycleAction { .. }
                | Write::RecordLifecycleActionHeartbeat { .. }
                | Write::DeleteLifecycleHook { .. }
                | Write::DeleteGroup { .. }
                | Write::CancelInstanceRefresh { .. }
                | Write::RollbackInstanceRefresh { .. }
                | Write::DeleteLaunchTemplate { .. }
                | Write::DeleteLaunchTemplateVersions { .. }
        )
}

/// The instance that our hook releases although its Node is not drained, since the drain exceeds its limit.
fn released_undrained<'a>(
    execution: &Execution<'_>,
    write: &'a Write,
    memory: &PoolMemory,
) -> Option<&'a str> {
    let Write::CompleteLifecycleAction { instance: id, .. } = write else { return None };
    let is_first = memory.lifecycle_actions.completed_at(id).is_none();
    let instance = execution.observed.instances.get(id)?;
    let since = memory.sightings.terminating_since(id);
    let is_terminated = since.is_some_and(|since| instance.is_terminated_since(since) == Some(true));
    let is_undrained = instance.asg_machine.is_some() && !instance.is_drained() && !is_terminated;
    (is_first && is_undrained).then_some(id.as_str())
}
