//! The next step.

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    backoff::Memory,
    change::{self, Change},
    input::{Cluster, ClusterDeletion, Desired, Found},
    ownership::{self, Ownership},
    report,
    step::{Decision, Removal, Step, Wait},
};
use crate::helm::ReleaseState;

/// How long a deletion waits for an API server that does not respond.
const UNREACHABLE: TimeDelta = TimeDelta::hours(1);
/// The same if the Cluster is being deleted: its resources are deleted with it.
const UNREACHABLE_WITH_CLUSTER: TimeDelta = TimeDelta::minutes(2);
/// The same if the release is uninstalled before the Cluster, since what it has in the cloud would remain there.
const UNREACHABLE_BEFORE_CLUSTER: TimeDelta = TimeDelta::minutes(10);
/// How much the clocks of two API servers differ at most.
const CLOCKS: TimeDelta = TimeDelta::seconds(5);
/// How long releases that depend on this one, and objects with resources in the cloud, are waited for.
const OTHERS: TimeDelta = TimeDelta::hours(1);

/// Decides the next step for one release.
#[must_use]
pub fn decide(desired: &Desired<'_>, cluster: &Cluster, memory: &Memory, now: DateTime<Utc>) -> Decision {
    if desired.is_paused {
        return Decision { step: Step::Nothing, conditions: Vec::new() };
    }
    let step = match desired.deleted_at {
        Some(deleted_at) => deletion(desired, cluster, deleted_at, memory, now),
        None if desired.cluster_deletion != ClusterDeletion::NotRequested => Step::Wait(Wait::Cluster),
        None => match cluster {
            Cluster::Reachable(None) => absent(desired, memory, now),
            Cluster::Reachable(Some(found)) => present(desired, found, memory, now),
            _ => Step::Wait(Wait::Cluster),
        },
    };
    let conditions = report::conditions(desired, cluster, memory, &step);
    Decision { step, conditions }
}

/// The decision after the steps that only record something on the object: the next one that changes the release, if any.
#[must_use]
pub fn decide_operation(
    desired: &Desired<'_>,
    cluster: &Cluster,
    memory: &Memory,
    now: DateTime<Utc>,
) -> Decision {
    let decision = decide(desired, cluster, memory, now);
    match &decision.step {
        Step::Record { id, name } if desired.id != Some(id.as_str()) || name.is_some() => {
            let mut spec = desired.spec.clone();
            if let Some(name) = name {
                spec.release_name.clone_from(name);
            }
            let recorded = Desired { spec: &spec, id: Some(id), ..desired.clone() };
            decide_operation(&recorded, cluster, memory, now)
        }
        Step::RecordInstalled => {
            let app_version = cluster.found().map(|found| found.release.chart.shown_app_version());
            if desired.is_installed && desired.app_version == app_version {
                return decision;
            }
            let recorded = Desired { is_installed: true, app_version, ..desired.clone() };
            decide_operation(&recorded, cluster, memory, now)
        }
        _ => decision,
    }
}

fn deletion(
    desired: &Desired<'_>,
    cluster: &Cluster,
    deleted_at: DateTime<Utc>,
    memory: &Memory,
    now: DateTime<Utc>,
) -> Step {
    let was_never_installed = desired.id.is_none() && !desired.is_installed;
    // With InstallOnce, the release stays in the cluster, as the other add-on provider leaves it.
    let stays = desired.spec.reconcile_strategy.is_install_once()
        && desired.cluster_deletion != ClusterDeletion::AfterRelease;
    let is_ours = cluster.found().is_some_and(|found| ownership::of(desired, found) == Ownership::Ours);
    let is_orphaned = desired.is_orphaned && desired.cluster_deletion != ClusterDeletion::AfterRelease;
    if was_never_installed || stays || is_orphaned || (desired.claimed_by.is_some() && !is_ours) {
        return Step::Release;
    }
    let limit = match desired.cluster_deletion {
        ClusterDeletion::NotRequested => UNREACHABLE,
        ClusterDeletion::Requested => UNREACHABLE_WITH_CLUSTER,
        ClusterDeletion::AfterRelease => UNREACHABLE_BEFORE_CLUSTER,
    };
    let until = deleted_at + OTHERS;
    let found = match cluster {
        Cluster::Missing => return Step::Release,
        Cluster::Reachable(None) => return uninstalled(desired, until, now),
        Cluster::Reachable(Some(found)) => found,
        // A kubeconfig that does not exist yet, or no longer, is waited for as an API server that does not respond.
        Cluster::NotInitialized | Cluster::NoAccess { .. } | Cluster::Blocked { .. } => {
            return gives_up(deleted_at, limit, now);
        }
        Cluster::Unreachable { since } => return gives_up(deleted_at.max(*since), limit, now),
    };
    if ownership::of(desired, found) != Ownership::Ours && !is_handed_over(desired, found) {
        return Step::Release;
    }
    // With keepHistory, the history of the release remains.
    if found.release.state == ReleaseState::Uninstalled {
        return uninstalled(desired, until, now);
    }
    if !desired.uninstalled_first.is_empty() && now < until {
        return Step::Wait(Wait::Dependents(until));
    }
    unless_failed(desired, memory, now, Step::Uninstall(Removal::Deleted))
}

/// A controller in the Cluster deletes what objects have in the cloud, as long as the Cluster exists.
fn uninstalled(desired: &Desired<'_>, until: DateTime<Utc>, now: DateTime<Utc>) -> Step {
    let waits = !desired.remaining.is_empty() && now < until;
    if waits { Step::Wait(Wait::Remaining(until)) } else { Step::Release }
}

/// Whether the release was installed by Cluster API's add-on provider for Helm for the same object.
fn is_handed_over(desired: &Desired<'_>, found: &Found) -> bool {
    matches!(ownership::of(desired, found), Ownership::TakenOver { is_requested: false, .. })
}

fn gives_up(since: DateTime<Utc>, limit: TimeDelta, now: DateTime<Utc>) -> Step {
    let until = since + limit;
    if now >= until { Step::Release } else { Step::Wait(Wait::Unreachable(until)) }
}

fn absent(desired: &Desired<'_>, memory: &Memory, now: DateTime<Utc>) -> Step {
    if let Some(other) = desired.claimed_by {
        return Step::Reject(ownership::Conflict::Claimed(other.to_owned()));
    }
    if desired.spec.reconcile_strategy.is_install_once() && desired.is_installed {
        return Step::Nothing;
    }
    if let Some(record) = record(desired) {
        return record;
    }
    unless_failed(desired, memory, now, Step::Install { replaces: false })
}

/// The record that precedes an installation, if it is not complete.
fn record(desired: &Desired<'_>) -> Option<Step> {
    let name = desired.spec.release_name.is_empty().then(|| desired.fresh.name.clone());
    let is_complete = desired.id.is_some() && name.is_none();
    let id = desired.id.unwrap_or(&desired.fresh.id).to_owned();
    (!is_complete).then_some(Step::Record { id, name })
}

fn present(desired: &Desired<'_>, found: &Found, memory: &Memory, now: DateTime<Utc>) -> Step {
    match ownership::of(desired, found) {
        Ownership::Conflicts(conflict) => return Step::Reject(conflict),
        Ownership::TakenOver { id, .. } => return Step::Record { id, name: None },
        Ownership::Ours => {}
    }
    let is_install_once = desired.spec.reconcile_strategy.is_install_once();
    if is_install_once && desired.is_installed {
        return Step::Nothing;
    }
    let state = found.release.state;
    if state.is_pending() {
        return pending(desired, found, now);
    }
    if state == ReleaseState::Uninstalling {
        return unless_failed(desired, memory, now, Step::Uninstall(Removal::Interrupted));
    }
    if state == ReleaseState::Uninstalled {
        let step = record(desired).unwrap_or(Step::Install { replaces: true });
        return unless_failed(desired, memory, now, step);
    }
    if found.release.chart.name != desired.spec.chart_name {
        return unless_failed(desired, memory, now, Step::Uninstall(Removal::OtherChart));
    }
    let is_deployed = state == ReleaseState::Deployed;
    match change::of(desired, found) {
        // An installation that succeeded counts, even if the spec has changed since.
        Some(_) if is_deployed && is_install_once => Step::RecordInstalled,
        Some(change) => unless_failed(desired, memory, now, Step::Upgrade(change)),
        None if !is_recorded(desired, found) => Step::RecordInstalled,
        None if corrects(desired, found, now) => {
            unless_failed(desired, memory, now, Step::Upgrade(Change::Drift))
        }
        None => Step::Nothing,
    }
}

/// Whether the object says that the release was installed, and which application it has.
fn is_recorded(desired: &Desired<'_>, found: &Found) -> bool {
    desired.is_installed && desired.app_version.unwrap_or_default() == found.release.chart.shown_app_version()
}

fn corrects(desired: &Desired<'_>, found: &Found, now: DateTime<Utc>) -> bool {
    desired.drift.is_some_and(|drift| drift.corrects(found.release.revision, now))
}

/// An operation was interrupted if it was ours, since ours end with the manager and this release has no other one now; or if
/// it takes longer than any of ours may. An object that was created after it began has been moved meanwhile: the manager of the
/// other management cluster may still carry it out.
fn pending(desired: &Desired<'_>, found: &Found, now: DateTime<Utc>) -> Step {
    let until = found.created_at + desired.operation_limit;
    let is_moved = desired.created_at.is_some_and(|created| created > found.created_at + CLOCKS);
    if (found.is_of_our_operation() && !is_moved) || now >= until {
        return Step::MarkFailed { revision: found.release.revision };
    }
    Step::Wait(Wait::Operation(until))
}

fn unless_failed(desired: &Desired<'_>, memory: &Memory, now: DateTime<Utc>, step: Step) -> Step {
    memory.waits_until(desired.request, now).map_or(step, |until| Step::Wait(Wait::Backoff(until)))
}
