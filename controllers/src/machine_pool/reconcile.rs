//! One reconcile of one pool, read from top to bottom.

use std::{collections::BTreeSet, sync::Arc};

use capasg_api::{
    capi::Cluster,
    conditions::{self, Finding},
    names::{annotations, events, finalizers},
    reasons::{INTERNAL_ERROR, launch_template_ready as reasons},
};
use capasg_cloud::{CloudError, FactsView, Inventory, View};
use chrono::{DateTime, Utc};
use kube::ResourceExt;

use super::{
    Next, ReconcileError,
    act::{Acted, Site, act, event},
    decide::{self, deletion::Waiting, machines, rollout},
    desired,
    memory::PoolMemory,
    observe::{Bootstrap, BootstrapProblem, Machines, References, Scene, image_source, join},
    report::{Told, new_machine, report, report_paused},
    stamp::hash,
    state::{
        Case, DeletionPhase, Desired, GroupView, MemberFacts, Needs, Observed, Obstacle, Plan, Step,
        TemplateView,
    },
};
use crate::{
    Context, ObjectKey,
    kubernetes::{EventKind, KubeWrite},
};

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
    let scene = Scene::observe(context.kubernetes.as_ref(), pool).await?;
    if scene.pause.is_paused() {
        report_paused(context, &scene, &cached_machines(context, &scene)).await?;
        return Ok(Next::default());
    }
    if scene.is_deleting() {
        delete(context, &scene, &mut memory).await
    } else {
        run(context, &scene, &mut memory).await
    }
}

async fn forget(context: &Context, key: &ObjectKey) {
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
    let Some(owner) = scene.machine_pool.clone() else {
        // C1: nothing is done before core says whose pool this is.
        return told_only(
            context,
            scene,
            memory,
            waiting("waiting for a MachinePool that refers to this pool"),
        )
        .await;
    };
    if !scene.cluster.as_deref().is_some_and(Cluster::is_infrastructure_ready) {
        let finding = Finding::new(
            conditions::LAUNCH_TEMPLATE_READY,
            false,
            reasons::WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY,
            "waiting for status.initialization.infrastructureProvisioned of the Cluster",
        );
        return told_only(context, scene, memory, finding).await;
    }
    if claim(context, scene).await? {
        // The write wakes the pool again with what it wrote.
        return Ok(Next::default());
    }
    let inventory = watch(context, scene, memory);
    let mut want = Wanted::at_first(&inventory, scene);
    let mut rounds = 0;
    loop {
        let machines = machines(context, scene, want.live_machines).await?;
        let (template, template_error) = template(&inventory, scene).await;
        let bootstrap = Bootstrap::observe(
            context.kubernetes.as_ref(),
            &owner,
            &scene.key.namespace,
            memory.bootstrap.as_ref(),
            want.user_data,
        )
        .await;
        let pinned_image = pinned_image(&inventory, scene, &template, owner.version());
        let references =
            References::observe(&inventory, &scene.pool.spec, &owner, pinned_image.as_deref()).await;
        let (bootstrap, mut findings) = match bootstrap {
            Ok(bootstrap) => {
                memory.bootstrap = Some(bootstrap.digest.clone());
                (Some(bootstrap), Vec::new())
            }
            Err(problem) => (None, vec![bootstrap_finding(&problem)]),
        };
        findings.extend(references.findings.iter().cloned());
        let Some(desired) = desired::desired(scene, &references, bootstrap.as_ref()) else {
            return told_only(context, scene, memory, waiting("waiting for the Cluster's name")).await;
        };
        let observed = observe(context, &inventory, &desired, template, &machines, &want, memory).await;
        let now = context.clock.now();
        let mut plan = decide::decide(&case(scene, &desired, &observed, memory, now));
        if want.satisfy(context, &inventory, scene, &desired, &plan.needs).await? {
            continue;
        }
        add_machines(scene, &observed, memory, &mut plan);
        inventory.set_transition(&desired.group, plan.in_transition);
        let site = Site {
            context,
            inventory: &inventory,
            scene,
            desired: &desired,
            observed: &observed,
            retry_key: retry_key(scene, memory),
        };
        let acted = act(&site, &plan.steps, memory).await;
        let outdated = rollout::outdated(&desired, &observed);
        announce(context, scene, &plan, memory).await;
        let told = Told {
            scene,
            desired: Some(&desired),
            observed: Some(&observed),
            plan: &plan,
            outdated: &outdated,
            references: &references,
            findings,
            unreachable: template_error.or_else(|| unreachable(&inventory, &acted)),
        };
        rounds += 1;
        let again = acted.as_ref().is_ok_and(|acted| acted.again) && rounds < ROUNDS;
        if !again {
            report(context, &told, &machines, memory).await?;
            acted?;
            return Ok(next(&plan, memory, now));
        }
        want = Wanted::at_first(&inventory, scene);
    }
}

/// A pool that is to go.
async fn delete(context: &Context, scene: &Scene, memory: &mut PoolMemory) -> Result<Next, ReconcileError> {
    if !scene.pool.finalizers().iter().any(|f| f == finalizers::POOL) {
        return Ok(Next::default());
    }
    let core_timeout = scene.machine_pool.as_ref().and_then(|owner| owner.node_drain_timeout_seconds());
    let Some(desired) = desired::identity(scene, core_timeout) else {
        // Without a Cluster name or owner id nothing was ever made in the cloud (E3).
        return release(context, scene).await;
    };
    let inventory = watch(context, scene, memory);
    let waiting = if scene.cluster.is_some() { Waiting::ForMachines } else { Waiting::ForNobody };
    let mut want = Wanted::default();
    let mut rounds = 0;
    loop {
        let machines = machines(context, scene, want.live_machines).await?;
        let (template, template_error) = template(&inventory, scene).await;
        let observed = observe(context, &inventory, &desired, template, &machines, &want, memory).await;
        let now = context.clock.now();
        let plan = decide::deletion::decide(&case(scene, &desired, &observed, memory, now), waiting);
        if want.satisfy(context, &inventory, scene, &desired, &plan.needs).await? {
            continue;
        }
        if plan.deletion == Some(DeletionPhase::Done) && plan.steps.is_empty() {
            return release(context, scene).await;
        }
        inventory.set_transition(&desired.group, plan.in_transition);
        let site = Site {
            context,
            inventory: &inventory,
            scene,
            desired: &desired,
            observed: &observed,
            retry_key: retry_key(scene, memory),
        };
        let acted = act(&site, &plan.steps, memory).await;
        announce(context, scene, &plan, memory).await;
        let told = Told {
            scene,
            desired: Some(&desired),
            observed: Some(&observed),
            plan: &plan,
            outdated: &rollout::Outdated::default(),
            references: &References::default(),
            findings: Vec::new(),
            unreachable: template_error.or_else(|| unreachable(&inventory, &acted)),
        };
        rounds += 1;
        let again = acted.as_ref().is_ok_and(|acted| acted.again) && rounds < ROUNDS;
        if !again {
            report(context, &told, &machines, memory).await?;
            acted?;
            return Ok(next(&plan, memory, now));
        }
        want = Wanted::default();
    }
}

fn case<'a>(
    scene: &'a Scene,
    desired: &'a Desired,
    observed: &'a Observed,
    memory: &'a PoolMemory,
    now: DateTime<Utc>,
) -> Case<'a> {
    Case { desired, observed, memory: &memory.decide, namespace: &scene.key.namespace, now }
}

/// Facts that were asked for in this reconcile.
#[derive(Debug, Default)]
struct Wanted {
    live_machines: bool,
    fresh_group: Option<DateTime<Utc>>,
    user_data: bool,
    account: Option<String>,
    hook: bool,
}

impl Wanted {
    /// The hook of a group that is there is always looked at; the inventory keeps it between audits.
    fn at_first(inventory: &Inventory, scene: &Scene) -> Self {
        let group = desired::cloud_names(scene).map(|(group, _)| inventory.view(&group));
        Self { hook: group.is_some_and(|view| view.group().is_some()), ..Self::default() }
    }

    /// Fetches what decide needs. True if deciding again makes sense now; machines' facts come later and wake the pool.
    async fn satisfy(
        &mut self,
        context: &Context,
        inventory: &Inventory,
        scene: &Scene,
        desired: &Desired,
        needs: &Needs,
    ) -> Result<bool, ReconcileError> {
        let mut again = false;
        if needs.live_machines && !self.live_machines {
            self.live_machines = true;
            again = true;
        }
        if needs.user_data && !self.user_data {
            self.user_data = true;
            again = true;
        }
        if needs.hook && !self.hook {
            self.hook = true;
            again = true;
        }
        if needs.account && self.account.is_none() {
            self.account = Some(inventory.account().await.map_err(ReconcileError::Cloud)?);
            again = true;
        }
        if needs.fresh_group && self.fresh_group.is_none() {
            self.fresh_group = Some(context.clock.now());
            inventory.read_group(&desired.group).await.map_err(ReconcileError::Cloud)?;
            again = true;
        }
        if !again && !needs.facts.is_empty() {
            tracing::debug!(pool = %scene.key, count = needs.facts.len(), "asking for machines");
            inventory.refetch(&desired.group, needs.facts.iter().cloned());
        }
        Ok(again)
    }
}

/// The cached or live Machines of a pool. Machines are listed before ASGMachines: a Machine's ASGMachine is older.
async fn machines(context: &Context, scene: &Scene, live: bool) -> Result<Machines, ReconcileError> {
    let Some(scope) = scene.machines_scope().filter(|_| live) else {
        return Ok(cached_machines(context, scene));
    };
    let machines = context.kubernetes.list_machines(&scope).await?;
    let asg_machines = context.kubernetes.list_asg_machines(&scope).await?;
    Ok(Machines { asg_machines, machines })
}

fn cached_machines(context: &Context, scene: &Scene) -> Machines {
    Machines {
        asg_machines: context.kubernetes.asg_machines(&scene.key),
        machines: scene.machines_scope().map(|scope| context.kubernetes.machines(&scope)).unwrap_or_default(),
    }
}

/// Registers the pool's group with the inventory.
fn watch(context: &Context, scene: &Scene, memory: &mut PoolMemory) -> Arc<Inventory> {
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

async fn template(inventory: &Inventory, scene: &Scene) -> (TemplateView, Option<CloudError>) {
    let Some((_, name)) = desired::cloud_names(scene) else { return (TemplateView::Unknown, None) };
    match inventory.template(&name).await {
        Ok(Some(found)) => (
            TemplateView::Present {
                id: found.template.id.clone(),
                owner_id: crate::names::owner_of(&found.template.tags),
                default_version: found.template.default_version,
                versions: found.versions.clone(),
            },
            None,
        ),
        Ok(None) => (TemplateView::Absent, None),
        Err(error) => (TemplateView::Unknown, Some(error)),
    }
}

/// The image of the pinned version, as long as the spec takes it from the same source.
fn pinned_image(
    inventory: &Inventory,
    scene: &Scene,
    template: &TemplateView,
    version: Option<&str>,
) -> Option<String> {
    let TemplateView::Present { id, versions, .. } = template else { return None };
    let (group, _) = desired::cloud_names(scene)?;
    let pinned = match inventory.view(&group).group() {
        Some(group) if group.settings.launch.template.id == *id => group.settings.launch.template.version?,
        _ => *versions.keys().next_back()?,
    };
    let found = versions.get(&pinned)?;
    let stamp = super::stamp::Stamp::parse(found.description.as_deref()?)?;
    let same = image_source(&scene.pool.spec, version).as_ref() == Some(&stamp.image_source);
    found.image_id.clone().filter(|_| same)
}

async fn observe(
    context: &Context,
    inventory: &Inventory,
    desired: &Desired,
    template: TemplateView,
    machines: &Machines,
    want: &Wanted,
    memory: &mut PoolMemory,
) -> Observed {
    let group = match inventory.view(&desired.group) {
        View::Unknown => GroupView::Unknown,
        View::Absent { as_of, settled } => GroupView::Absent { as_of, settled },
        View::Present { group, as_of, settled } => GroupView::Present { group, as_of, settled },
    };
    let facts = |id: &str| match inventory.facts(id) {
        FactsView::Unknown => None,
        FactsView::Absent { as_of } => Some(MemberFacts { facts: None, as_of }),
        FactsView::Present(facts) => {
            Some(MemberFacts { facts: Some(facts.facts.clone()), as_of: facts.as_of })
        }
    };
    let (members, stray_machines) = join(group.present(), machines, facts);
    let hook = if want.hook {
        let ours = capasg_api::names::TERMINATE_HOOK;
        let hooks = inventory.hooks(&desired.group).await.ok();
        hooks.map(|hooks| hooks.iter().find(|hook| hook.name == ours).cloned())
    } else {
        None
    };
    let fresh_group = want.fresh_group.is_some_and(|since| group.as_of().is_some_and(|as_of| as_of >= since));
    let observed = Observed {
        group,
        template,
        account: want.account.clone(),
        hook,
        members,
        live_machines: want.live_machines,
        fresh_group,
        stray_machines,
    };
    remember(&observed, memory, context.clock.now());
    observed
}

/// Notes when an instance was first seen ending or missing, and drops what no longer matters.
fn remember(observed: &Observed, memory: &mut PoolMemory, now: DateTime<Utc>) {
    let decide = &mut memory.decide;
    if let Some(as_of) = observed.group.as_of() {
        for (id, member) in &observed.members {
            let leaving = member.lifecycle().is_none_or(capasg_cloud::LifecycleState::is_terminating);
            if leaving {
                decide.first_seen.entry(id.clone()).or_insert(as_of);
            } else {
                decide.first_seen.remove(id);
            }
        }
    }
    if let (Some(group), true) = (observed.group.present(), observed.group.is_settled()) {
        decide.desired_written = Some(group.capacity.desired);
    }
    let known: BTreeSet<&String> = observed.members.keys().collect();
    for map in
        [&mut decide.first_seen, &mut decide.end_requested, &mut decide.completed, &mut decide.extended]
    {
        map.retain(|id, _| known.contains(id));
    }
    // Long after any view that still shows the instance.
    decide.released.retain(|id, at| known.contains(id) || now - *at < chrono::TimeDelta::minutes(10));
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

/// Adds finalizer and owner id before anything is made in the cloud (C6, C8). True if something was written.
async fn claim(context: &Context, scene: &Scene) -> Result<bool, ReconcileError> {
    let pool = &scene.pool;
    let held = pool.finalizers().iter().any(|f| f == finalizers::POOL);
    let owner_id = pool.annotations().get(annotations::OWNER_ID);
    if held && owner_id.is_some() {
        return Ok(false);
    }
    let mut all = pool.finalizers().to_vec();
    if !held {
        all.push(finalizers::POOL.to_owned());
    }
    let write = KubeWrite::ClaimPool {
        pool: scene.key.clone(),
        resource_version: pool.resource_version().unwrap_or_default(),
        finalizers: all,
        owner_id: owner_id.cloned().unwrap_or_else(|| context.random.owner_id()),
    };
    context.kubernetes.write(&write).await?;
    Ok(true)
}

/// Removes our finalizer: nothing of the pool is left in the cloud.
async fn release(context: &Context, scene: &Scene) -> Result<Next, ReconcileError> {
    let finalizers_left: Vec<String> =
        scene.pool.finalizers().iter().filter(|f| *f != finalizers::POOL).cloned().collect();
    let write = KubeWrite::ReleasePool {
        pool: scene.key.clone(),
        resource_version: scene.pool.resource_version().unwrap_or_default(),
        finalizers: finalizers_left,
    };
    context.kubernetes.write(&write).await?;
    Ok(Next::default())
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
        outdated: &rollout::Outdated::default(),
        references: &References::default(),
        findings: vec![finding],
        unreachable: None,
    };
    report(context, &told, &Machines::default(), memory).await?;
    Ok(Next::default())
}

fn waiting(message: &'static str) -> Finding {
    Finding::new(conditions::LAUNCH_TEMPLATE_READY, false, reasons::LAUNCH_TEMPLATE_NOT_READY, message)
}

fn bootstrap_finding(problem: &BootstrapProblem) -> Finding {
    let (reason, message) = match problem {
        BootstrapProblem::Waiting(message) => (reasons::WAITING_FOR_BOOTSTRAP_DATA, message.clone()),
        BootstrapProblem::TooLarge(size) => (
            reasons::BOOTSTRAP_DATA_TOO_LARGE,
            format!(
                "bootstrap data has {size} bytes, AWS takes at most 16384. Shorten the bootstrap config."
            ),
        ),
        BootstrapProblem::Failed(message) => (INTERNAL_ERROR, message.clone()),
    };
    Finding::new(conditions::LAUNCH_TEMPLATE_READY, false, reason, message)
}

fn unreachable(inventory: &Inventory, acted: &Result<Acted, ReconcileError>) -> Option<CloudError> {
    match acted {
        Err(ReconcileError::Cloud(error)) if error.class != capasg_cloud::ErrorClass::Conflict => {
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

fn next(plan: &Plan, memory: &PoolMemory, now: DateTime<Utc>) -> Next {
    let after = plan.look_again.into_iter().chain(memory.refused.next_try(now)).min();
    Next { after }
}
