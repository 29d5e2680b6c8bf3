//! One reconcile of one pool, read from top to bottom.

use std::sync::Arc;

use capasg_api::{
    ASGMachinePool,
    capi::{Cluster, MachinePool},
    conditions::{self, Finding},
    names::{annotations, events, finalizers},
};
use capasg_cloud::{CloudError, ErrorClass, InstanceTypes, Inventory};
use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt;

use super::{
    Next, ReconcileError,
    act::{Acted, Site, act, event},
    block_move,
    claim::{claim, release},
    decide::{
        self,
        deletion::Waiting,
        external, in_flight, launch_template, machines, members, preview,
        rollout::{self, Outdated, OutdatedReason},
    },
    desired, launches,
    memory::PoolMemory,
    observe::{
        self, Bootstrap, BootstrapProblem, Machines, References, Scene, Wanted, cached_machines, pinned_image,
    },
    report::{self, Told, new_machine, report, report_paused, waits},
    stamp::hash,
    state::{Case, DeletionPhase, Desired, Observed, Obstacle, Plan, Step, TemplateView},
};
use crate::{
    Context, ObjectKey,
    kubernetes::{EventKind, KubeWrite},
};

/// Decisions whose effect is known at once are followed up in the same reconcile, at most this often.
const ROUNDS: usize = 4;
/// What nothing tells of (a bootstrap config that appears, an answer that stays away) is looked for this often.
const LOOK_AGAIN: TimeDelta = TimeDelta::seconds(30);
/// What neither a watch nor a poll tells (hooks, templates, parameters of images, tags of subnets) is looked at this
/// often; how long an answer is believed decides what is read.
const LOOK_AROUND: TimeDelta = TimeDelta::minutes(30);
/// What AWS refuses to tell is asked for again after this.
const ASK_AGAIN: TimeDelta = TimeDelta::minutes(10);

/// Observes, decides, acts and reports for one pool.
///
/// # Errors
/// A call that failed in passing. The caller retries with backoff.
pub async fn reconcile(context: &Context, key: &ObjectKey) -> Result<Next, ReconcileError> {
    let Some(pool) = context.kubernetes.pool(key) else {
        forget(context, key).await;
        return Ok(Next::default());
    };
    let memory = context.memory(key);
    let mut memory = memory.lock().await;
    // Taken before anything is looked at: what is announced later was not seen.
    let announced = memory.watching.clone().map(|(region, group)| {
        let inventory = context.regions.inventory(&region);
        let mark = inventory.announced();
        (inventory, group, mark)
    });
    let next = reconcile_known(context, pool, &mut memory).await?;
    if let Some((inventory, group, mark)) = announced {
        inventory.saw(&group, mark);
    }
    Ok(next)
}

/// A pool that is there.
async fn reconcile_known(
    context: &Context,
    pool: Arc<ASGMachinePool>,
    memory: &mut PoolMemory,
) -> Result<Next, ReconcileError> {
    let scene = Scene::observe(context.kubernetes.as_ref(), pool).await?;
    if scene.pause.is_paused() {
        memory.take_over_rollout(&scene, context.clock.now());
        // Core is paused, too: no instance could have joined.
        memory.decide.wait_anew();
        report_paused(context, &scene, &cached_machines(context, &scene)).await?;
        return block_move::lift(context, &scene, memory).await;
    }
    memory.found_whole.get_or_insert_with(|| found_whole(&scene));
    if scene.is_deleting() {
        delete(context, &scene, memory).await
    } else {
        run(context, &scene, memory).await
    }
}

/// Drops what is remembered of a pool that is gone.
pub async fn forget(context: &Context, key: &ObjectKey) {
    let Some(memory) = context.forget(key) else { return };
    let watching = memory.lock().await.watching.take();
    if let Some((region, group)) = watching
        && context.unwatch(key, &region, &group)
    {
        context.regions.inventory(&region).forget(&group);
    }
}

/// A pool that is to exist.
async fn run(context: &Context, scene: &Scene, memory: &mut PoolMemory) -> Result<Next, ReconcileError> {
    let owner = match owner(scene) {
        Ok(owner) => owner,
        Err(finding) => return told_only(context, scene, memory, finding).await,
    };
    if claim(context, scene).await? {
        // The write wakes the pool again with what it wrote.
        return Ok(Next::default());
    }
    memory.decide.wish_key = wish_key(scene);
    let inventory = watch(context, scene, memory);
    memory.take_over_rollout(scene, context.clock.now());
    memory.decide.see_whether_blind(inventory.reachable().is_err());
    let mut want = Wanted::at_first(&inventory, scene);
    let mut rounds = 0;
    loop {
        let bootstrap = bootstrap(context, scene, &owner, memory, want.user_data).await;
        if let (Err(problem), None) = (&bootstrap, &scene.pool.spec.provider_id) {
            // Nothing runs yet and nothing can be made: the cloud need not be asked at all.
            let next = Next { after: Some(LOOK_AGAIN) };
            return told_only(context, scene, memory, waits::for_bootstrap(problem)).await.map(|_| next);
        }
        let machines = observe::machines(context, scene, want.live_machines).await?;
        let (template, template_error) = observe::template(&inventory, scene).await;
        let pinned_image = pinned_image(&inventory, scene, &template, owner.version());
        let references =
            References::observe(&inventory, &scene.pool.spec, &owner, pinned_image.as_deref()).await;
        let (bootstrap, mut findings) = match bootstrap {
            Ok(bootstrap) => (Some(bootstrap), Vec::new()),
            Err(problem) => (None, vec![waits::for_bootstrap(&problem)]),
        };
        let bootstrap_lacks = bootstrap.is_none();
        findings.extend(references.findings.iter().cloned());
        let Some(mut desired) = desired::desired(scene, &references, bootstrap.as_ref()) else {
            return told_only(context, scene, memory, waits::waiting("waiting for the Cluster's name")).await;
        };
        let (observed, hook_error) =
            observe::observe(context, &inventory, &desired, template, &machines, &want, memory).await;
        let now = context.clock.now();
        let told = external::Told { status: scene.pool.status.as_ref(), before: memory.decide.told_external };
        external::settle(&mut desired, &observed, &scene.pool.spec, &owner, told);
        memory.decide.reported_whole =
            scene.pool.metadata.generation.is_some_and(|now| memory.found_whole == Some(now));
        let mut pending = Some(Vec::new());
        if let Some((held, changes)) = preview::hold(&case(scene, &desired, &observed, memory, now)) {
            (desired, pending) = (held, changes);
        }
        let mut plan = decide::decide(&case(scene, &desired, &observed, memory, now));
        plan.pending = pending;
        let satisfied = want.satisfy(context, &inventory, scene, &desired, &plan.needs).await;
        if matches!(satisfied, Ok(true)) {
            continue;
        }
        if bootstrap_lacks {
            plan.look_again_within(LOOK_AGAIN);
        }
        add_machines(scene, &observed, memory, &mut plan);
        let unread = template_error.or(hook_error).or_else(|| references.failed.clone());
        let look = Look { desired, observed, plan, machines, references, findings, unread };
        rounds += 1;
        if let Some(next) =
            finish(context, &inventory, scene, look, satisfied, rounds < ROUNDS, memory).await?
        {
            return Ok(next);
        }
        want = Wanted::at_first(&inventory, scene);
    }
}

/// The bootstrap data, with what is remembered of it brought up to date.
async fn bootstrap(
    context: &Context,
    scene: &Scene,
    owner: &MachinePool,
    memory: &mut PoolMemory,
    want_data: bool,
) -> Result<Bootstrap, BootstrapProblem> {
    let kubernetes = context.kubernetes.as_ref();
    let known = memory.bootstrap.as_ref();
    let read = Bootstrap::observe(kubernetes, owner, &scene.key.namespace, known, want_data).await?;
    memory.bootstrap = Some(read.digest.clone());
    Ok(read)
}

/// The MachinePool of a pool that may be worked on; else what is waited for.
fn owner(scene: &Scene) -> Result<Arc<MachinePool>, Finding> {
    // C1: nothing is done before core says whose pool this is.
    let owner = scene
        .machine_pool
        .clone()
        .ok_or_else(|| waits::waiting("waiting for a MachinePool that refers to this pool"))?;
    if !scene.cluster.as_deref().is_some_and(Cluster::is_infrastructure_ready) {
        return Err(waits::for_infrastructure());
    }
    if scene.pool.spec.provider_id.is_some() && desired::owner_id(scene).is_none() {
        // A new id would make a stranger of the group that we run.
        return Err(waits::identity_lost(conditions::GROUP_READY, false));
    }
    Ok(owner)
}

/// A pool that is to go.
async fn delete(context: &Context, scene: &Scene, memory: &mut PoolMemory) -> Result<Next, ReconcileError> {
    if !scene.pool.finalizers().iter().any(|f| f == finalizers::POOL) {
        return Ok(Next::default());
    }
    let core_timeout = scene.machine_pool.as_ref().and_then(|owner| owner.node_drain_timeout_seconds());
    let Some(desired) = desired::identity(scene, core_timeout) else {
        let spec = &scene.pool.spec;
        if spec.provider_id.is_some() || !spec.provider_id_list.is_empty() {
            return told_only(context, scene, memory, waits::identity_lost(conditions::DELETING, true)).await;
        }
        // Without a Cluster name or owner id nothing was ever made in the cloud (E3).
        return release(context, scene).await;
    };
    let inventory = watch(context, scene, memory);
    let waiting = if scene.cluster.is_some() { Waiting::ForMachines } else { Waiting::ForNobody };
    let mut want = Wanted::default();
    let mut rounds = 0;
    loop {
        let machines = observe::machines(context, scene, want.live_machines).await?;
        let (template, template_error) = observe::template(&inventory, scene).await;
        let (observed, hook_error) =
            observe::observe(context, &inventory, &desired, template, &machines, &want, memory).await;
        let now = context.clock.now();
        let plan = decide::deletion::decide(&case(scene, &desired, &observed, memory, now), waiting);
        let satisfied = want.satisfy(context, &inventory, scene, &desired, &plan.needs).await;
        if matches!(satisfied, Ok(true)) {
            continue;
        }
        if plan.deletion == Some(DeletionPhase::Done) && plan.steps.is_empty() {
            return release(context, scene).await;
        }
        let look = Look {
            desired: desired.clone(),
            observed,
            plan,
            machines,
            references: References::default(),
            findings: Vec::new(),
            unread: template_error.or(hook_error),
        };
        rounds += 1;
        if let Some(next) =
            finish(context, &inventory, scene, look, satisfied, rounds < ROUNDS, memory).await?
        {
            return Ok(next);
        }
        want = Wanted::default();
    }
}

/// What one look at a pool came to.
struct Look {
    desired: Desired,
    observed: Observed,
    plan: Plan,
    machines: Machines,
    references: References,
    findings: Vec<Finding>,
    /// A read that failed, so that something is not known.
    unread: Option<CloudError>,
}

/// Acts on a look and reports it. `None` if a step's effect is known at once, so that looking again makes sense.
async fn finish(
    context: &Context,
    inventory: &Inventory,
    scene: &Scene,
    look: Look,
    satisfied: Result<bool, ReconcileError>,
    may_repeat: bool,
    memory: &mut PoolMemory,
) -> Result<Option<Next>, ReconcileError> {
    let Look { desired, observed, mut plan, machines, references, findings, unread } = look;
    let before = memory.decide.rollout.clone();
    let now = context.clock.now();
    block_move::add(scene, &case(scene, &desired, &observed, memory, now), &mut plan);
    inventory.set_transition(&desired.group, plan.in_transition && !in_flight::is_at_rest(&observed, &plan));
    memory.decide.note_agreed(&observed, &plan);
    let site = Site {
        context,
        inventory,
        scene,
        desired: &desired,
        observed: &observed,
        retry_key: retry_key(scene, memory),
    };
    // A read that failed is told like a step that failed; steps that did not need it are taken.
    let acted = act(&site, &plan, memory).await.and_then(|acted| satisfied.map(|_| acted));
    announce(context, scene, &plan, memory).await;
    if may_repeat && acted.as_ref().is_ok_and(|acted| acted.again) {
        return Ok(None);
    }
    let followed = plan.follows_rollout || scene.is_deleting();
    if acted.is_err() || !followed || matches!(observed.template, TemplateView::Unknown) {
        // What was not carried out is not told: a mark that is missing must be missed.
        plan.rollout_status = before;
    }
    let outdated =
        if scene.is_deleting() { Outdated::default() } else { rollout::outdated(&desired, &observed, now) };
    look_at_launches(
        context,
        inventory,
        scene,
        &Launches { observed: &observed, plan: &plan, references: &references },
        memory,
    )
    .await;
    // Nothing but status waits for this, so it is read last.
    let types = instance_types(context, inventory, scene, memory).await;
    let told = Told {
        scene,
        types: types.as_ref().and_then(|types| types.as_ref().ok()),
        desired: Some(&desired),
        observed: Some(&observed),
        plan: &plan,
        outdated: &outdated,
        references: &references,
        findings,
        unreachable: unread.clone().or_else(|| unreachable(inventory, &acted)),
    };
    if !scene.is_deleting() {
        let PoolMemory { decide, ends, .. } = &mut *memory;
        observe::causes(inventory, &desired.group, &observed, &machines, decide, ends).await;
    }
    report(context, &told, &machines, memory).await?;
    tell_rollout(context, &told, memory).await;
    memory.decide.rollout.clone_from(&told.plan.rollout_status);
    let before = memory.decide.told_external;
    memory.decide.told_external = external::was_told(&desired, scene.machine_pool.as_deref(), before);
    let mut next = next(&plan, &acted?, memory, now);
    if let Some(Err(error)) = types {
        let again = if error.class.is_permanent() { ASK_AGAIN } else { LOOK_AGAIN };
        next.after = Some(next.after.map_or(again, |after| after.min(again)));
    }
    looked_at(unread, next).map(Some)
}

/// What AWS says of the spec's instance types. A failure stops nothing: one that only a person can mend is told once.
async fn instance_types(
    context: &Context,
    inventory: &Inventory,
    scene: &Scene,
    memory: &mut PoolMemory,
) -> Option<Result<InstanceTypes, CloudError>> {
    if scene.is_deleting() {
        return None;
    }
    let found = inventory.instance_types(&scene.pool.spec.instance_types).await;
    let refused = found.as_ref().err().filter(|error| error.class.is_permanent()).map(ToString::to_string);
    if let Some(words) = refused.as_ref().filter(|_| memory.types_refused != refused) {
        let message = format!("status.capacity is not known: {words}");
        event(context, scene, EventKind::Warning, events::CALL_REJECTED, message).await;
    }
    memory.types_refused = refused;
    Some(found)
}

pub(super) fn case<'a>(
    scene: &'a Scene,
    desired: &'a Desired,
    observed: &'a Observed,
    memory: &'a PoolMemory,
    now: DateTime<Utc>,
) -> Case<'a> {
    Case { desired, observed, memory: &memory.decide, namespace: &scene.key.namespace, now }
}

/// The steps that make missing ASGMachines; they go before anything that may fail in the cloud.
fn add_machines(scene: &Scene, observed: &Observed, memory: &PoolMemory, plan: &mut Plan) {
    if plan.obstacle.as_ref().is_some_and(Obstacle::is_foreign)
        || observed.group.present().is_none_or(capasg_cloud::Group::is_deleting)
    {
        return;
    }
    let missing = machines::missing(observed, &memory.decide);
    let new = missing.iter().filter_map(|new| new_machine(scene, new));
    plan.steps
        .splice(0..0, new.map(|machine| Step::Kubernetes(KubeWrite::CreateAsgMachine(Box::new(machine)))));
}

/// Reports without having asked the cloud.
async fn told_only(
    context: &Context,
    scene: &Scene,
    memory: &PoolMemory,
    finding: Finding,
) -> Result<Next, ReconcileError> {
    let told = Told {
        scene,
        desired: None,
        observed: None,
        plan: &Plan::default(),
        outdated: &Outdated::default(),
        references: &References::default(),
        types: None,
        findings: vec![finding],
        unreachable: None,
    };
    report(context, &told, &Machines::default(), memory).await?;
    Ok(Next::default())
}

/// Registers the pool's group with the inventory.
pub(super) fn watch(context: &Context, scene: &Scene, memory: &mut PoolMemory) -> Arc<Inventory> {
    let region = scene.pool.spec.region.clone();
    let inventory = context.regions.inventory(&region);
    if let Some((group, _)) = desired::cloud_names(scene) {
        let watching = (region.clone(), group.clone());
        if memory.watching.as_ref() != Some(&watching) {
            inventory.register(&group);
            context.watch(&scene.key, &region, &group);
            memory.watching = Some(watching);
        }
    }
    inventory
}

/// The generation of the spec for which the report of the process before found the group in order; 0 for none.
fn found_whole(scene: &Scene) -> i64 {
    let status = scene.pool.status.as_ref();
    status
        .filter(|status| conditions::is_true(&status.conditions, conditions::GROUP_READY))
        .map_or(0, |status| status.observed_generation)
}

fn unreachable(inventory: &Inventory, acted: &Result<Acted, ReconcileError>) -> Option<CloudError> {
    match acted {
        Err(ReconcileError::Cloud(error))
            if matches!(error.class, ErrorClass::Throttled | ErrorClass::Transient | ErrorClass::Denied) =>
        {
            Some(error.clone())
        }
        _ => inventory.reachable().err(),
    }
}

/// One event when a foreign group stands in the way, not one for each reconcile.
async fn announce(context: &Context, scene: &Scene, plan: &Plan, memory: &mut PoolMemory) {
    let obstacle = plan.obstacle.as_ref().filter(|o| o.is_foreign()).map(|o| format!("{o:?}"));
    if obstacle.is_some() && obstacle != memory.announced {
        let message = "the cloud holds something of this pool's name that is not ours; nothing is changed";
        event(context, scene, EventKind::Warning, events::GROUP_NOT_OWNED, message.to_owned()).await;
    }
    memory.announced = obstacle;
}

/// One event when a rollout starts and one when it is over. They follow the status, so that a new process repeats none.
async fn tell_rollout(context: &Context, told: &Told<'_>, memory: &mut PoolMemory) {
    let (reported, now) = told.rolling_out();
    let before = memory.rolling_out.replace(now).unwrap_or(reported);
    let (reason, message) = match (before, now) {
        (false, true) => {
            let reasons: Vec<&str> =
                told.outdated.reasons().into_iter().map(OutdatedReason::as_str).collect();
            let message =
                format!("{} instances are outdated ({})", told.outdated.count(), reasons.join(", "));
            (events::ROLLOUT_STARTED, message)
        }
        (true, false) if told.outdated.count() == 0 => {
            (events::ROLLOUT_COMPLETED, "no instance is outdated any more".to_owned())
        }
        _ => return,
    };
    event(context, told.scene, EventKind::Normal, reason, message).await;
}

/// What the watch of launches looks at.
struct Launches<'a> {
    observed: &'a Observed,
    plan: &'a Plan,
    references: &'a References,
}

/// Looks whether launches succeed, and reads why not if it is time. One event for each reason until they succeed again.
async fn look_at_launches(
    context: &Context,
    inventory: &Inventory,
    scene: &Scene,
    look: &Launches<'_>,
    memory: &mut PoolMemory,
) {
    let now = context.clock.now();
    let Launches { observed, plan, references } = *look;
    let foreign = plan.obstacle.as_ref().is_some_and(Obstacle::is_foreign);
    let group =
        observed.group.present().filter(|group| !foreign && !scene.is_deleting() && !group.is_deleting());
    let Some(group) = group else {
        memory.launches.rest(now);
        memory.decide.launches_fail = false;
        return;
    };
    let stamp = launch_template::pinned_stamp(observed).map(|stamp| stamp.rollout);
    let launch = format!("{:?} {:?} {stamp:?}", group.settings.launch.mixed, group.settings.subnets);
    let seen = launches::Seen {
        desired: group.capacity.desired,
        live: members::live_count(observed),
        in_service: members::in_service_count(observed),
        is_trying: !group.suspended_processes.contains_key("Launch"),
        wish: launches::Wish { launch, retry: scene.pool.annotations().get(annotations::RETRY).cloned() },
    };
    memory.launches.see(&seen, scene.pool.status.as_ref(), now);
    if memory.launches.is_due(now) {
        let read = inventory.scaling_activities(&group.name).await;
        if let Err(error) = &read {
            tracing::warn!(api = error.api, code = %error.code, message = %error.message, "why instances lack is not known");
        }
        let zones = references.zones.iter().map(|subnet| (subnet.id.clone(), subnet.zone.clone())).collect();
        let names = launches::Names { types: &scene.pool.spec.instance_types, zones: &zones };
        let learnt = memory.launches.learn(read, names, context.clock.now());
        for obstacle in learnt.counted {
            context.observer.launch_failed(report::launches::reason(obstacle));
        }
        if let Some(blocked) = memory.launches.blocked().filter(|_| learnt.is_news) {
            let message = report::launches::words(blocked);
            event(context, scene, EventKind::Warning, events::LAUNCH_FAILED, message).await;
        }
    }
    memory.decide.launches_fail = memory.launches.blocked().is_some();
}

/// A hash of what a person changes to say that the cause of failed launches is mended: bootstrap tokens and replicas
/// change by themselves.
fn wish_key(scene: &Scene) -> String {
    let mut spec = scene.pool.spec.clone();
    spec.provider_id = None;
    spec.provider_id_list = Vec::new();
    let version = scene.machine_pool.as_ref().and_then(|owner| owner.version().map(str::to_owned));
    hash(&(spec, version, scene.pool.annotations().get(annotations::RETRY)))
}

/// A hash of what a person can change: a refused call is tried at once when it changes (design section 3).
fn retry_key(scene: &Scene, memory: &PoolMemory) -> String {
    let mut spec = scene.pool.spec.clone();
    spec.provider_id = None;
    spec.provider_id_list = Vec::new();
    let owner = scene
        .machine_pool
        .as_ref()
        .map(|owner| (&owner.spec.replicas, &owner.spec.template, &owner.spec.failure_domains));
    let retry = scene.pool.annotations().get(annotations::RETRY);
    let bootstrap = memory.bootstrap.as_ref().map(|b| (&b.spec, &b.data));
    hash(&(spec, owner, retry, bootstrap))
}

fn next(plan: &Plan, acted: &Acted, memory: &PoolMemory, now: DateTime<Utc>) -> Next {
    let unmet = (!plan.needs.is_empty()).then_some(LOOK_AGAIN);
    let launches = memory.launches.wait(now).map(|wait| wait.max(TimeDelta::seconds(1)));
    let others = memory.refused.next_try(now).into_iter().chain(unmet).chain(acted.wait).chain(launches);
    let after = plan.look_again.into_iter().chain(others).fold(LOOK_AROUND, TimeDelta::min);
    Next { after: Some(after) }
}

/// A look-up that failed is tried again with backoff: nothing else would wake the pool.
fn looked_at(failed: Option<CloudError>, next: Next) -> Result<Next, ReconcileError> {
    failed.map_or(Ok(next), |error| Err(ReconcileError::Cloud(error)))
}
