//! One reconcile of a `HelmReleaseProxy`: observe, decide, report, record, and one operation.

use std::time::Instant;

use capasg_api::capi::{self, pause_state};
use chrono::{DateTime, TimeDelta, Utc};
use kube::{Api, ResourceExt as _};

use super::{
    Context, Next, ObjectKey, RETRY, ReconcileError,
    context::Remembered,
    drift, events,
    observe::{Observed, observe},
    write,
};
use crate::{
    HelmReleaseProxy,
    decide::release::{self, Change, Decision, Desired, Drift, Removal, Step, Wait, decide, labels},
    engine::Request,
    helm::{ChartSource, Labels, Version},
    kinds::conditions::RELEASE_READY,
    names,
};

/// A release that waits for other releases or for objects of its Cluster is requeued after this long: no event of theirs wakes
/// it.
const OTHERS: TimeDelta = TimeDelta::seconds(5);
/// How many decisions one reconcile makes: two may record something, an ID with a name, and the installation.
const DECISIONS: usize = 3;

/// Reconciles an object. It carries out one operation on the release at most.
///
/// # Errors
/// If the management cluster cannot be read or written.
pub async fn reconcile(
    context: &Context,
    key: &ObjectKey,
    now: DateTime<Utc>,
) -> Result<Next, ReconcileError> {
    let api: Api<HelmReleaseProxy> = Api::namespaced(context.client.clone(), &key.namespace);
    let object = api.get_opt(&key.name).await;
    let object = object.map_err(|source| ReconcileError::Read { what: "the HelmReleaseProxy", source })?;
    let Some(object) = object else {
        context.forget(key);
        return Ok(Next::Never);
    };
    let is_deleting = object.metadata.deletion_timestamp.is_some();
    let has_finalizer = object.finalizers().iter().any(|finalizer| finalizer == names::RELEASE_FINALIZER);
    if is_deleting && !has_finalizer {
        return Ok(Next::Never);
    }
    let clusters: Api<capi::Cluster> = Api::namespaced(context.client.clone(), &key.namespace);
    let cluster = clusters.get_opt(&object.spec.cluster_ref.name).await;
    let cluster = cluster.map_err(|source| ReconcileError::Read { what: "the Cluster", source })?;
    if pause_state(cluster.as_ref(), object.annotations()).is_paused() {
        return Ok(Next::Later);
    }
    if !is_deleting && !has_finalizer {
        write::finalizer(&context.client, &object, true).await?;
        return Ok(Next::Now);
    }
    let mut remembered = context.remembered(key, &object.spec.chart_name);
    let next = step(context, object, cluster.as_ref(), &mut remembered, now).await;
    context.remember(key, remembered);
    next
}

/// Reports and records, until the next step is another one.
async fn step(
    context: &Context,
    mut object: HelmReleaseProxy,
    cluster: Option<&capi::Cluster>,
    remembered: &mut Remembered,
    now: DateTime<Utc>,
) -> Result<Next, ReconcileError> {
    let mut observed = observe(context, &object, cluster, remembered, now).await?;
    for _ in 0..DECISIONS {
        let decided = decided(context, &object, &observed, remembered, now).await;
        let reported =
            write::report(&context.client, &object, &observed.cluster, &decided.decision, now).await?;
        // What was observed belongs to the object as it was read.
        if !is_same_request(&object, &reported) {
            return Ok(Next::Now);
        }
        object = reported;
        object = match &decided.decision.step {
            Step::Record { id, name } => {
                let recorded = write::record(&context.client, &object, id, name.as_deref()).await?;
                // Another object may have recorded the same release since it was observed.
                observed.claim(context, &recorded).await?;
                recorded
            }
            Step::RecordInstalled => {
                write::record_installed(&context.client, &object, &observed.cluster).await?
            }
            _ => return act(context, &object, &observed, &decided, remembered, now).await,
        };
    }
    Ok(Next::Now)
}

/// Whether two states of an object request the same. The status alone may differ.
fn is_same_request(a: &HelmReleaseProxy, b: &HelmReleaseProxy) -> bool {
    let request =
        |object: &HelmReleaseProxy| (object.metadata.generation, object.metadata.deletion_timestamp.clone());
    request(a) == request(b) && a.annotations() == b.annotations()
}

/// A decision, and what belongs to it.
struct Decided {
    decision: Decision,
    /// What identifies the request, for the memory of failures.
    request: String,
    /// The labels of the revision that an operation creates.
    labels: Labels,
    drift: Option<Drift>,
}

async fn decided(
    context: &Context,
    object: &HelmReleaseProxy,
    observed: &Observed,
    remembered: &mut Remembered,
    now: DateTime<Utc>,
) -> Decided {
    let request = observed.request(object);
    let mut drift = drift::of(object, remembered, now);
    let desired = observed.desired(object, &request, &remembered.fresh);
    let with = |drift: Option<&Drift>| {
        let desired = Desired { drift, ..desired.clone() };
        decide(&desired, &observed.cluster, &remembered.memory, now)
    };
    let mut decision = with(drift.as_ref());
    if decision.step == Step::Nothing
        && let Some(drift) = &mut drift
        && drift::check(context, object, observed, drift, now).await
    {
        decision = with(Some(drift));
    }
    let labels = labels(&desired, next_revision(&observed.cluster));
    if let Some(drift) = &drift {
        remembered.drift.clone_from(&drift.memory);
    }
    Decided { decision, request, labels, drift }
}

/// Carries out a step that records nothing.
async fn act(
    context: &Context,
    object: &HelmReleaseProxy,
    observed: &Observed,
    decided: &Decided,
    remembered: &mut Remembered,
    now: DateTime<Utc>,
) -> Result<Next, ReconcileError> {
    let Decided { decision, request, labels, drift } = decided;
    match &decision.step {
        Step::Record { .. } | Step::RecordInstalled => {}
        Step::Release => {
            let ready = decision.conditions.iter().find(|finding| finding.type_ == RELEASE_READY);
            let left = ready.map(|finding| &*finding.message).filter(|message| !message.is_empty());
            events::publish(context, object, &decision.step, left).await;
            write::finalizer(&context.client, object, false).await?;
            return Ok(Next::Never);
        }
        Step::Nothing => {
            return Ok(drift.as_ref().map_or(Next::Later, |drift| Next::At(drift.next(now))));
        }
        Step::Wait(Wait::Cluster) if observed.cluster.is_retried() => {
            return Ok(Next::At(now + RETRY.max(observed.cluster.unreachable_for(now))));
        }
        Step::Reject(_) | Step::Wait(Wait::Cluster) => return Ok(Next::Later),
        Step::Wait(Wait::Backoff(until) | Wait::Operation(until) | Wait::Unreachable(until)) => {
            return Ok(Next::At(*until));
        }
        Step::Wait(Wait::Dependents(until) | Wait::Remaining(until)) => {
            return Ok(Next::At((now + OTHERS).min(*until)));
        }
        Step::Install { .. } | Step::Upgrade(_) | Step::MarkFailed { .. } | Step::Uninstall(_) => {
            if context.guard.deadline().is_none() {
                return Err(ReconcileError::NotLeading);
            }
            let started = Instant::now();
            let outcome = carry_out(context, object, observed, &decision.step, labels).await;
            let reason = outcome.as_ref().map_or_else(|(reason, _)| *reason, |()| "ok");
            context.observer.operated(decision.step.operation(), reason, started.elapsed());
            let failure = outcome.as_ref().err().map(|(_, message)| message.as_str());
            // A failure that repeats is in the condition.
            let known = remembered.memory.failure(request).map(|(_, message)| message);
            if failure.is_none() || failure != known {
                events::publish(context, object, &decision.step, failure).await;
            }
            match outcome {
                Ok(()) => {
                    remembered.memory.succeeded();
                    if decision.step == Step::Upgrade(Change::Drift) {
                        remembered.drift.corrected(now);
                    }
                }
                Err((reason, message)) => remembered.memory.failed(request, reason, message, Utc::now()),
            }
        }
    }
    Ok(Next::Now)
}

/// Carries out a step in the workload cluster; or the reason and the message of the failure.
async fn carry_out(
    context: &Context,
    object: &HelmReleaseProxy,
    observed: &Observed,
    step: &Step,
    labels: &Labels,
) -> Result<(), (&'static str, String)> {
    let (Some(workload), Some(key)) = (&observed.workload, &observed.key) else { return Ok(()) };
    let options = object.spec.options.clone().unwrap_or_default();
    let needs_chart =
        matches!(step, Step::Install { .. } | Step::Upgrade(_) | Step::Uninstall(Removal::OtherChart));
    let mut source = match observed.source.as_ref().filter(|_| needs_chart) {
        Some(place) => Some(place.chart(context, &object.namespace().unwrap_or_default()).await?),
        None => None,
    };
    // The version that was decided on: the repository may have another one by now.
    if let (Some(ChartSource::Repository(source)), Some(newest)) = (&mut source, &observed.newest)
        && let Ok(newest) = Version::parse(newest)
    {
        source.version = Some(newest);
    }
    let request = Request { source: source.as_ref(), options: &options, values: &observed.values, labels };
    let carried_out = workload.carry_out(&context.helm, key, step, &request).await;
    carried_out.map_err(|error| (error.reason(), error.to_string()))
}

pub(super) fn next_revision(cluster: &release::Cluster) -> i64 {
    cluster.found().map_or(1, |found| found.release.revision + 1)
}
