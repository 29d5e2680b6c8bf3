//! The rolling update by property: whole rollouts, carried out step by step by a small AWS and a small core, with
//! random budgets, sizes, edits, deaths and restarts.

use capasg_api::pool::ResolvedRollout;
use capasg_cloud::{Capacity, LifecycleState, Write};
use capasg_test_objects::is_long;
use chrono::TimeDelta;
use proptest::prelude::*;

use crate::kubernetes::{DeletionReason, KubeWrite};
use crate::machine_pool::decide::rollout::outdated;
use crate::machine_pool::decide::testing::{Stage, pool_instance, stamp, version};
use crate::machine_pool::model::{
    DesiredLaunch, Known, Needs, ObservedTemplate, Plan, PoolInstance, PoolMemory, Step,
};

/// The time between two reconciles.
const TICK: TimeDelta = TimeDelta::seconds(2);

/// A pool that nothing wakes is reconciled after this long.
const RESYNC: TimeDelta = TimeDelta::minutes(10);

/// Something that happens from outside.
#[derive(Debug, Clone)]
enum Happening {
    /// Another image is desired.
    Edit(u8),
    Scale(i32),
    /// An instance dies; the group replaces it.
    Kill(usize),
    /// A Node fails permanently.
    Break(usize),
    /// A user deletes a Machine.
    Delete(usize),
    /// A user requests the replacement of an instance.
    Request(usize),
    /// How many may be disrupted at once changes.
    Limit(Option<i32>),
    /// AWS launches nothing, or does again.
    Shortage(bool),
    Restart,
}

fn happenings() -> impl Strategy<Value = Happening> {
    prop_oneof![
        3 => (2..6_u8).prop_map(Happening::Edit),
        2 => (0..7_i32).prop_map(Happening::Scale),
        1 => (0..8_usize).prop_map(Happening::Kill),
        1 => (0..8_usize).prop_map(Happening::Break),
        1 => (0..8_usize).prop_map(Happening::Delete),
        1 => (0..8_usize).prop_map(Happening::Request),
        1 => prop::option::of(1..4_i32).prop_map(Happening::Limit),
        1 => any::<bool>().prop_map(Happening::Shortage),
        1 => Just(Happening::Restart),
    ]
}

struct World {
    stage: Stage,
    shortage: bool,
    chance: u64,
    launched: usize,
    terminated: usize,
}

impl World {
    fn new(replicas: i32, rollout: ResolvedRollout, seed: u64) -> Self {
        let mut stage = Stage::new(replicas);
        stage.desired.rollout = rollout;
        Self { stage, shortage: false, chance: seed | 1, launched: 0, terminated: 0 }
    }

    /// True once in `one_in` times.
    fn chance(&mut self, one_in: u64) -> bool {
        self.chance =
            self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.chance >> 33).is_multiple_of(one_in)
    }

    fn set_desired(&mut self, image: u8) {
        if let DesiredLaunch::Known { data, stamp: desired, .. } = &mut self.stage.desired.launch {
            data.image_id = format!("ami-{image}");
            *desired = stamp(&image.to_string());
        }
    }

    fn happen(&mut self, what: &Happening) {
        let ids: Vec<String> = self.stage.observed.instances.keys().cloned().collect();
        let nth = |which: &usize| ids.get(which % ids.len().max(1)).cloned();
        match what {
            Happening::Edit(image) => self.set_desired(*image),
            Happening::Scale(replicas) => self.stage.desired.replicas = *replicas,
            Happening::Kill(which) => {
                if let Some(id) = nth(which) {
                    self.stage.observed.instances.remove(&id);
                }
            }
            Happening::Break(which) => {
                // Its health check finds it unhealthy, too; otherwise it would never be replaced.
                let machine = nth(which).and_then(|id| self.stage.instance(&id).machine.as_mut());
                if let Some(machine) = machine {
                    (machine.ready, machine.needs_remediation) = (false, true);
                }
            }
            Happening::Delete(which) => {
                let clock = self.stage.clock;
                if let Some(machine) = nth(which).and_then(|id| self.stage.instance(&id).machine.as_mut()) {
                    machine.deleting_since.get_or_insert(clock);
                }
            }
            Happening::Request(which) => {
                if let Some(machine) = nth(which).and_then(|id| self.stage.instance(&id).asg_machine.as_mut())
                {
                    machine.replace_requested = true;
                }
            }
            Happening::Limit(most) => self.stage.desired.disruption.max_disrupted = *most,
            Happening::Shortage(lasts) => self.shortage = *lasts,
            Happening::Restart => self.stage.memory = PoolMemory::default(),
        }
    }

    /// What AWS and core do meanwhile.
    fn pass_time(&mut self) {
        self.stage.clock += TICK;
        let clock = self.stage.clock;
        let wanted = usize::try_from(self.stage.group().capacity.desired).unwrap();
        let pinned = self.stage.group().settings.launch.template.version.unwrap();
        while !self.shortage && self.stage.observed.instances.len() < wanted {
            self.launched += 1;
            let id = format!("n-{:04}", self.launched);
            let new = self.stage.add(&id, pinned);
            new.asg_machine = None;
            new.machine = None;
            self.stage.lifecycle(&id, LifecycleState::Pending);
        }
        let ids: Vec<String> = self.stage.observed.instances.keys().cloned().collect();
        for id in ids {
            if !self.chance(3) {
                continue;
            }
            let born = pool_instance(&id, "a", 0);
            let one = self.stage.instance(&id);
            let drains = one.machine.as_ref().is_some_and(|machine| machine.deleting_since.is_some());
            match (&mut one.listed, &mut one.asg_machine, &mut one.machine) {
                (Some(instance), _, _) if instance.lifecycle == LifecycleState::Pending => {
                    instance.lifecycle = LifecycleState::InService;
                }
                (_, ours @ None, _) => *ours = born.asg_machine,
                (_, _, machine @ None) => {
                    *machine = born.machine.map(|mut machine| {
                        (machine.has_node, machine.ready) = (false, false);
                        machine
                    });
                }
                (_, Some(ours), Some(_)) if drains => {
                    ours.deleting_since.get_or_insert(clock);
                }
                (_, _, Some(machine)) if !machine.needs_remediation => {
                    (machine.has_node, machine.ready) = (true, true);
                }
                _ => {}
            }
        }
    }

    /// Decides once and carries it out.
    fn step(&mut self) -> Result<Plan, TestCaseError> {
        self.stage.observe(self.stage.clock);
        let plan = self.stage.plan();
        self.check(&plan)?;
        self.check_limit(&plan)?;
        self.check_requeue(&plan)?;
        // As a report does.
        self.stage.memory.rollout.reported_mut().clone_from(&plan.rollout_status);
        for step in plan.steps() {
            match step {
                Step::Cloud(write) => self.cloud(write),
                Step::Kubernetes(write) => self.kubernetes(write),
            }
        }
        Ok(plan)
    }

    fn is_available(instance: &PoolInstance) -> bool {
        let serves = instance.lifecycle() == Some(&LifecycleState::InService);
        serves && !instance.is_deleting() && instance.machine.as_ref().is_some_and(|m| m.has_node && m.ready)
    }

    /// No plan disrupts more than the budget allows.
    fn check(&self, plan: &Plan) -> Result<(), TestCaseError> {
        let desired = &self.stage.desired;
        let instances = &self.stage.observed.instances;
        let least = usize::try_from(desired.replicas - desired.rollout.max_unavailable).unwrap_or(0);
        let outdated: Vec<&str> = plan
            .steps()
            .filter_map(|step| match step {
                Step::Kubernetes(KubeWrite::DeleteMachine { machine, reason: why, .. }) => {
                    (*why == DeletionReason::Outdated).then_some(machine.name.as_str())
                }
                _ => None,
            })
            .collect();
        let goes = |m: &PoolInstance| m.machine.as_ref().is_some_and(|m| outdated.contains(&m.name.as_str()));
        let available = instances.values().filter(|m| Self::is_available(m)).count();
        let taken = instances.values().filter(|m| Self::is_available(m) && goes(m)).count();
        prop_assert!(taken == 0 || available - taken >= least, "{available} - {taken} < {least}");
        let staying = instances.values().filter(|m| !m.is_deleting()).count();
        prop_assert!(outdated.is_empty() || staying - outdated.len() >= least, "{staying} stay");
        let target = plan.target.unwrap_or(desired.replicas);
        prop_assert!(target <= desired.replicas + desired.rollout.max_surge, "aims at {target}");
        prop_assert!(target >= desired.replicas, "aims at {target}");
        Ok(())
    }

    /// Whatever the reasons, no plan disrupts more Nodes at once than `maxDisrupted`.
    fn check_limit(&self, plan: &Plan) -> Result<(), TestCaseError> {
        let Some(most) = self.stage.desired.disruption.max_disrupted else { return Ok(()) };
        let instances = &self.stage.observed.instances;
        let deleted: Vec<&str> = plan
            .steps()
            .filter_map(|step| match step {
                Step::Kubernetes(KubeWrite::DeleteMachine { machine, .. }) => Some(machine.name.as_str()),
                _ => None,
            })
            .collect();
        let has_node = |m: &&PoolInstance| m.machine.as_ref().is_some_and(|machine| machine.has_node);
        let goes = |m: &&PoolInstance| m.machine.as_ref().is_some_and(|m| deleted.contains(&m.name.as_str()));
        let new = instances.values().filter(has_node).filter(goes).count();
        let leaving = instances.values().filter(has_node).filter(|m| m.is_deleting()).count();
        let staying = instances.values().filter(|m| m.is_live() && !m.is_deleting()).filter(has_node).count();
        let missing = usize::try_from(self.stage.desired.replicas).unwrap_or(0).saturating_sub(staying);
        let disrupted = new + leaving.max(missing);
        let most = usize::try_from(most).unwrap_or(0);
        prop_assert!(new == 0 || disrupted <= most, "{new} alongside {leaving} or {missing}: above {most}");
        Ok(())
    }

    /// Nothing follows from the time alone before the pool is requeued, by the periodic resync at the latest.
    fn check_requeue(&self, plan: &Plan) -> Result<(), TestCaseError> {
        if !plan.is_empty() || plan.needs != Needs::default() {
            return Ok(());
        }
        let after = plan.requeue_after.unwrap_or(RESYNC).min(RESYNC);
        for later in [after / 2, after - TimeDelta::milliseconds(1)] {
            let mut stage = self.stage.clone();
            stage.clock += later;
            stage.observe(stage.clock);
            let steps: Vec<Step> = stage.plan().steps().cloned().collect();
            prop_assert!(steps.is_empty(), "{steps:?} {later} later, requeued after {after}");
        }
        Ok(())
    }

    fn cloud(&mut self, write: &Write) {
        match write {
            Write::SetDesiredCapacity { desired, .. } => self.stage.group().capacity.desired = *desired,
            Write::UpdateGroup { change, .. } => {
                let group = self.stage.group();
                if let (Some(min), Some(max), Some(desired)) = (change.min, change.max, change.desired) {
                    group.capacity = Capacity { min, max, desired };
                }
                if let Some(launch) = &change.launch {
                    group.settings.launch = launch.clone();
                }
            }
            Write::CreateLaunchTemplateVersion { data, description, .. } => {
                if let Known::Present(ObservedTemplate { versions, .. }) = &mut self.stage.observed.template {
                    let number = versions.keys().next_back().copied().unwrap_or(0) + 1;
                    let mut new = version(number, &stamp(""));
                    new.description = Some(description.clone());
                    new.image_id = Some(data.image_id.clone());
                    versions.insert(number, new);
                }
            }
            Write::DeleteLaunchTemplateVersions { versions: gone, .. } => {
                if let Known::Present(ObservedTemplate { versions, .. }) = &mut self.stage.observed.template {
                    versions.retain(|number, _| !gone.contains(number));
                }
            }
            Write::TerminateInstances { instances, decrement, .. } => {
                for id in instances {
                    self.stage.observed.instances.remove(id);
                    self.terminated += 1;
                    self.stage.group().capacity.desired -= i32::from(*decrement);
                }
            }
            other => panic!("{other:?}"),
        }
    }

    fn kubernetes(&mut self, write: &KubeWrite) {
        let clock = self.stage.clock;
        let mut with = |name: &str, change: &dyn Fn(&mut PoolInstance)| {
            let id = name.strip_prefix("p-").unwrap();
            change(self.stage.observed.instances.get_mut(id).unwrap());
        };
        match write {
            KubeWrite::DeleteMachine { machine, .. } => with(&machine.name, &|m| {
                m.machine.as_mut().unwrap().deleting_since.get_or_insert(clock);
            }),
            KubeWrite::AnnotateDeleteMachine { machine, annotated, .. } => {
                with(&machine.name, &|m| {
                    let value = annotated.then(|| crate::names::SCALE_IN_VALUE.to_owned());
                    m.machine.as_mut().unwrap().delete_annotation = value;
                });
            }
            KubeWrite::AnnotateTerminationRequested { machine, .. } => with(&machine.name, &|m| {
                m.asg_machine.as_mut().unwrap().termination_requested_at = Some(clock);
            }),
            KubeWrite::AnnotateRolloutStopped { revision, .. } => {
                self.stage.desired.stopped.clone_from(revision);
            }
            other => panic!("{other:?}"),
        }
    }

    /// Lives on until nothing is left to do.
    fn settle(&mut self) -> Result<(), TestCaseError> {
        self.shortage = false;
        let mut calm = 0;
        for _ in 0..3_000 {
            let plan = self.step()?;
            self.pass_time();
            let replicas = usize::try_from(self.stage.desired.replicas).unwrap_or(usize::MAX);
            let instances = &self.stage.observed.instances;
            let whole = instances.len() == replicas && instances.values().all(Self::is_available);
            calm = if whole && plan.is_empty() { calm + 1 } else { 0 };
            if calm > 10 {
                let outdated =
                    outdated::outdated(&self.stage.desired, &self.stage.observed, self.stage.clock);
                prop_assert_eq!(outdated.count(), 0);
                prop_assert_eq!(&plan.rollout_status, &None);
                prop_assert_eq!(self.stage.group().capacity.desired, self.stage.desired.replicas);
                let max = self.stage.group().capacity.max;
                prop_assert_eq!(max, self.stage.desired.replicas, "the surge is removed");
                return Ok(());
            }
        }
        let Stage { desired, observed, memory, .. } = &self.stage;
        Err(TestCaseError::fail(format!("it does not settle: {desired:?} {observed:?} {memory:?}")))
    }
}

fn budgets() -> impl Strategy<Value = ResolvedRollout> {
    (0..4_i32, 0..4_i32).prop_filter("one of them", |(surge, missing)| surge + missing > 0).prop_map(
        |(max_surge, max_unavailable)| ResolvedRollout {
            max_surge,
            max_unavailable,
            ..ResolvedRollout::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if is_long() { 300 } else { 100 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn h3_d10_d15_rollouts_converge_within_the_budget(
        replicas in 0..6_i32,
        budget in budgets(),
        seed in any::<u64>(),
        history in prop::collection::vec((happenings(), 0..20_usize), 0..12),
    ) {
        let mut world = World::new(replicas, budget, seed);
        for (what, ticks) in &history {
            world.happen(what);
            for _ in 0..*ticks {
                world.step()?;
                world.pass_time();
            }
        }
        world.settle()?;
    }

    #[test]
    fn h3_edits_that_follow_fast_replace_each_instance_once(
        replicas in 1..6_i32,
        budget in budgets(),
        seed in any::<u64>(),
        edits in prop::collection::vec(1..5_usize, 1..4),
    ) {
        let mut world = World::new(replicas, budget, seed);
        for (image, ticks) in (2..).zip(&edits) {
            world.set_desired(image);
            // At most 8 s, so that the next edit comes before the desired state is stable.
            for _ in 0..*ticks {
                world.step()?;
                world.pass_time();
            }
        }
        world.settle()?;
        prop_assert_eq!(world.terminated, usize::try_from(replicas).unwrap(), "each was replaced once");
        prop_assert_eq!(world.launched, usize::try_from(replicas).unwrap());
    }
}
