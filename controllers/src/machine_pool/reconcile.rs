//! One reconcile of one pool, read from top to bottom.

use std::sync::Arc;

use capasg_api::{
    ASGMachinePool,
    capi::{Cluster, MachinePool},
    conditions::{self, Finding},
    names::finalizers,
};
use capasg_cloud::Inventory;
use chrono::{DateTime, Utc};
use kube::ResourceExt;

use super::{
    Next, ReconcileError, block_move,
    claim::{claim, release},
    decide::{self, deletion::Waiting, external, machines, preview, rollout::Outdated},
    desired,
    finish::{LOOK_AGAIN, Look, finish},
    memory::PoolMemory,
    observe::{
        self, Bootstrap, BootstrapProblem, Machines, References, Scene, Wanted, cached_machines, pinned_image,
    },
    report::{Told, new_machine, report, report_paused, waits},
    retry,
    state::{Case, DeletionPhase, Desired, Observed, Obstacle, Plan, ReplicaOwner, Step},
};
use crate::{Context, ObjectKey, kubernetes::KubeWrite};

/// Decisions whose effect is known at once are followed up in the same reconcile, at most this often.
const ROUNDS: usize = 4;
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
        let mark = inventory.announced(&group);
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
    memory.decide.began.get_or_insert_with(|| context.clock.now());
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
    memory.decide.wish_key = retry::wish_key(scene, &mut memory.wish);
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
        if memory.named_image.is_none() {
            memory.named_image = observe::named_before(&scene.pool, owner.version());
        }
        let references = References::observe(
            &inventory,
            &scene.pool.spec,
            &owner,
            pinned_image.as_deref(),
            &mut memory.named_image,
        )
        .await;
        let (bootstrap, mut findings) = match bootstrap {
            Ok(bootstrap) => (Some(bootstrap), Vec::new()),
            Err(problem) => (None, vec![waits::for_bootstrap(&problem)]),
        };
        let bootstrap_lacks = bootstrap.is_none();
        findings.extend(references.findings.iter().cloned());
        let Some(mut desired) = desired::desired(scene, &references, bootstrap.as_ref()) else {
            return told_only(context, scene, memory, waits::waiting("waiting for the Cluster's name")).await;
        };
        let (mut observed, hook_error) =
            observe::observe(context, &inventory, &desired, template, &machines, &want, memory).await;
        let now = context.clock.now();
        let told = external::Told { status: scene.pool.status.as_ref(), before: memory.decide.told_external };
        external::settle(&mut desired, &observed, &scene.pool.spec, &owner, told);
        if desired.owner != ReplicaOwner::MachinePool {
            observed.fresh_group = observe::was_read(&observed.group, &want);
        }
        memory.decide.reported_whole =
            scene.pool.metadata.generation.is_some_and(|now| memory.found_whole == Some(now));
        let mut pending = Some(Vec::new());
        if let Some((held, changes)) = preview::hold(&case(scene, &desired, &observed, memory, now)) {
            (desired, pending) = (held, changes);
        }
        let mut plan = decide::decide(&case(scene, &desired, &observed, memory, now));
        plan.pending = plan.pending.take().or(pending);
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
