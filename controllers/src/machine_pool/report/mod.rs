//! Report: writes what others read, and only what changed: the ASGMachines, then `spec.providerIDList`, then status.

mod capacity;
mod findings;
pub mod launches;
mod machine;
mod rollout;
mod status;
pub mod waits;

use capasg_api::{
    ASGMachine, ASGMachinePoolStatus, ASGMachineSpec,
    capi::owner_reference_to_pool,
    conditions::{self, Finding, paused},
    names::{finalizers, labels, machine_name, must_format_value},
};
use kube::ResourceExt;
use kube::api::ObjectMeta;

use super::{
    decide::{machines, rollout::Outdated},
    memory::PoolMemory,
    observe::{Machines, References, Scene},
    state::{Desired, GroupView, Observed, Obstacle, Plan},
};
use crate::{
    Context, ObjectKey,
    kubernetes::{KubeWrite, Result},
};

/// Everything that a report is made of.
pub struct Told<'a> {
    /// The pool and what is around it.
    pub scene: &'a Scene,
    /// The wish, once it could be told.
    pub desired: Option<&'a Desired>,
    /// The facts, once the cloud was asked.
    pub observed: Option<&'a Observed>,
    /// The plan.
    pub plan: &'a Plan,
    /// The outdated instances.
    pub outdated: &'a Outdated,
    /// What the spec's references resolved to.
    pub references: &'a References,
    /// What AWS says of the spec's instance types, once it was asked.
    pub types: Option<&'a capasg_cloud::InstanceTypes>,
    /// What observe found missing, one finding per condition.
    pub findings: Vec<Finding>,
    /// The last failure to reach the cloud.
    pub unreachable: Option<capasg_cloud::CloudError>,
}

impl Told<'_> {
    /// Whether a rollout is under way, by the last report and by this one.
    #[must_use]
    pub fn rolling_out(&self) -> (bool, bool) {
        let now = rollout::rolling_out(self);
        let before = rollout::was_rolling_out(self);
        let unknown = now.status == conditions::Status::Unknown;
        (before, if unknown { before } else { now.status == conditions::Status::True })
    }

    /// Whether differences are only shown.
    #[must_use]
    pub fn previews(&self) -> bool {
        self.desired.is_some_and(|desired| desired.previews) && !self.scene.is_deleting()
    }

    /// Whether what stands under our name is not ours: then its facts are not ours to report.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.plan.obstacle.as_ref().is_some_and(Obstacle::is_foreign)
    }
}

/// Writes the ASGMachines' statuses, the pool's list and its status, as far as they changed.
///
/// # Errors
/// A write that the API server refused.
pub async fn report(
    context: &Context,
    told: &Told<'_>,
    machines: &Machines,
    memory: &PoolMemory,
) -> Result<()> {
    let now = context.clock.now();
    if let Some(observed) = told.observed.filter(|observed| is_telling(observed, told.plan)) {
        for machine in &machines.asg_machines {
            let status = machine::status(machine, observed, told, memory, now);
            if machine.status.as_ref() != Some(&status) {
                let write = KubeWrite::AsgMachineStatus {
                    machine: ObjectKey::of(machine.as_ref()),
                    made_from: None,
                    status: Box::new(status),
                };
                gone_is_fine(context.kubernetes.write(&write).await)?;
            }
        }
    }
    let before = &told.scene.pool.spec.provider_id_list;
    let list = told
        .observed
        .filter(|observed| observed.group.present().is_some())
        .map(|observed| machines::provider_id_list(observed, before, &memory.decide));
    provider_ids(context, told, list.as_ref()).await?;
    let status = status::status(told, list.as_ref(), memory, now);
    write_status(context, told.scene, status, told.observed.is_none()).await
}

/// Whether the facts say anything about single instances: a group that was not read, or is not believed to be gone,
/// must not make every instance look ended.
fn is_telling(observed: &Observed, plan: &Plan) -> bool {
    match &observed.group {
        GroupView::Unknown => false,
        GroupView::Present { .. } => true,
        GroupView::Absent { settled, .. } => *settled && plan.obstacle.is_none() && plan.needs.is_empty(),
    }
}

/// Nothing is to be done for a pool that is paused; only the condition says so (F1, F2, M2).
///
/// # Errors
/// A write that the API server refused.
pub async fn report_paused(context: &Context, scene: &Scene, machines: &Machines) -> Result<()> {
    let now = context.clock.now();
    let generation = scene.pool.metadata.generation.unwrap_or_default();
    let mut status = scene.pool.status.clone().unwrap_or_default();
    conditions::set(&mut status.conditions, paused(scene.pause, "ASGMachinePool"), generation, now);
    conditions::complete(&mut status.conditions, conditions::POOL, generation, now);
    status.phase = Some(capasg_api::pool::Phase::Paused);
    write_status(context, scene, status, true).await?;
    for machine in &machines.asg_machines {
        let status = machine::paused_status(machine, scene, now);
        if machine.status.as_ref() != Some(&status) {
            let write = KubeWrite::AsgMachineStatus {
                machine: ObjectKey::of(machine.as_ref()),
                made_from: machine.resource_version(),
                status: Box::new(status),
            };
            gone_is_fine(context.kubernetes.write(&write).await)?;
        }
    }
    Ok(())
}

/// The ASGMachine of an instance (D2 to D5). By its owner a move takes it along (M1).
#[must_use]
pub fn new_machine(scene: &Scene, new: &machines::NewMachine) -> Option<ASGMachine> {
    let scope = scene.machines_scope()?;
    let name = machine_name(&scene.key.name, &new.instance);
    let spec = ASGMachineSpec { provider_id: new.provider_id.clone(), instance_id: new.instance.clone() };
    let mut machine = ASGMachine::new(&name, spec);
    let mut labels_of = std::collections::BTreeMap::from([
        (labels::CLUSTER_NAME.to_owned(), scope.cluster.clone()),
        (labels::POOL_NAME.to_owned(), must_format_value(&scope.machine_pool)),
    ]);
    if let Some(filter) = scene.pool.labels().get(labels::WATCH_FILTER) {
        labels_of.insert(labels::WATCH_FILTER.to_owned(), filter.clone());
    }
    machine.metadata = ObjectMeta {
        name: Some(name),
        namespace: Some(scene.key.namespace.clone()),
        labels: Some(labels_of),
        finalizers: Some(vec![finalizers::MACHINE.to_owned()]),
        owner_references: owner_reference_to_pool(&scene.pool).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    Some(machine)
}

/// The ARN of the group once (B9), and the list of instances whenever it changes (B1, B3).
async fn provider_ids(context: &Context, told: &Told<'_>, list: Option<&Vec<String>>) -> Result<()> {
    let spec = &told.scene.pool.spec;
    let arn = told.observed.and_then(|o| o.group.present()).map(|group| &group.arn);
    let owned = !told.is_foreign();
    let write = KubeWrite::PoolProviderIds {
        pool: told.scene.key.clone(),
        provider_id: arn.filter(|arn| owned && spec.provider_id.as_ref() != Some(arn)).cloned(),
        list: list.filter(|list| owned && spec.provider_id_list != **list).cloned(),
    };
    match &write {
        KubeWrite::PoolProviderIds { provider_id: None, list: None, .. } => Ok(()),
        write => context.kubernetes.write(write).await,
    }
}

/// Writes the status if it differs; one that `repeats` what was read, for the most part, only over that.
async fn write_status(
    context: &Context,
    scene: &Scene,
    status: ASGMachinePoolStatus,
    repeats: bool,
) -> Result<()> {
    if scene.pool.status.as_ref() == Some(&status) {
        return Ok(());
    }
    let write = KubeWrite::PoolStatus {
        pool: scene.key.clone(),
        made_from: scene.pool.resource_version().filter(|_| repeats),
        status: Box::new(status),
    };
    context.kubernetes.write(&write).await
}

fn gone_is_fine(result: Result<()>) -> Result<()> {
    match result {
        Err(crate::kubernetes::KubeError::NotFound { .. }) => Ok(()),
        other => other,
    }
}
