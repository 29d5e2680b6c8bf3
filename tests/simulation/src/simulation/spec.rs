//! Specs that AWS takes, and edits of them.

use capasg_api::{
    ASGMachinePoolSpec,
    pool::{
        ChangePolicy, DeletionPolicy, Disruption, DisruptionWindow, Drain, InstanceTypeEntry,
        InstancesDistribution, OnCloudTermination, OnPoolDeletion, RemediationPolicy, RollingUpdate, Rollout,
        RolloutMode, RolloutType, RootVolume, ScaleInOrder, SubnetSelector,
    },
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::act::{Opens, SpecEdit};
use crate::{Random, pool_spec};

pub(super) const TYPES: [&str; 3] = ["m7i.large", "m6i.large", "c7i.xlarge"];
pub(super) const SUBNETS: [&str; 3] = ["subnet-0a1b2c3d", "subnet-0b1c2d3e", "subnet-0c1d2e3f"];
pub(super) const IMAGES: [&str; 3] = ["ami-0a1b2c3d", "ami-0b1c2d3e", "ami-0d1e2f3a"];

/// The alarm that fails a refresh.
pub(super) const ALARM: &str = "workers-5xx";

/// One to all of these, in their order.
pub(super) fn some<'a>(random: &Random, of: &[&'a str]) -> Vec<&'a str> {
    let mut chosen: Vec<&str> = of.iter().filter(|_| random.chance(60)).copied().collect();
    if chosen.is_empty() {
        chosen.push(of[random.index(of.len())]);
    }
    chosen
}

/// A spec for a pool of about this size.
pub(super) fn spec(random: &Random, size: i32) -> ASGMachinePoolSpec {
    let mut spec = pool_spec();
    apply(&mut spec, &SpecEdit::Types(some(random, &TYPES)));
    apply(&mut spec, &SpecEdit::Subnets(some(random, &SUBNETS)));
    if random.chance(30) {
        spec.instances_distribution = Some(InstancesDistribution {
            on_demand_base_capacity: Some(i32::try_from(random.below(3)).unwrap_or(0)),
            on_demand_percentage_above_base_capacity: Some(i32::try_from(random.below(101)).unwrap_or(0)),
            ..InstancesDistribution::default()
        });
    }
    for (percent, edit) in [
        (40, rolling(random, size)),
        (15, SpecEdit::OnDelete),
        (25, drain_timeout(random)),
        (15, SpecEdit::HoldEnds(false)),
        (10, SpecEdit::DrainOnDeletion(false)),
        (20, SpecEdit::Newest(true)),
        (15, SpecEdit::Bounds(Some(0), Some(size.saturating_mul(2)))),
        (10, SpecEdit::Remediate(false)),
        (25, max_disrupted(random, size)),
        (12, windows(random)),
        (8, progress_deadline(random)),
        (6, SpecEdit::Orphan(true)),
    ] {
        if random.chance(percent) {
            apply(&mut spec, &edit);
        }
    }
    if random.chance(15) {
        spec.machine.image.id = None;
        spec.machine.image.ssm_parameter = Some("/images/node/v{version}".to_owned());
    }
    // One at a time takes hours of virtual time.
    if size > 20 {
        apply(&mut spec, &SpecEdit::Rolling(-25, -10));
    }
    spec
}

/// A budget of a rolling update.
pub(super) fn rolling(random: &Random, size: i32) -> SpecEdit {
    if size > 20 || random.chance(25) {
        return SpecEdit::Rolling(-25, -20);
    }
    let number = |most| i32::try_from(random.below(most)).unwrap_or(0);
    match (number(4), number(3)) {
        (0, 0) => SpecEdit::Rolling(1, 0),
        (surge, missing) => SpecEdit::Rolling(surge, missing),
    }
}

/// A limit on drains.
pub(super) fn drain_timeout(random: &Random) -> SpecEdit {
    SpecEdit::DrainTimeout([None, Some(60), Some(120), Some(600), Some(10_000)][random.index(5)])
}

/// A budget for all disruptions.
pub(super) fn max_disrupted(random: &Random, size: i32) -> SpecEdit {
    let few = if size > 20 { -10 } else { 1 };
    SpecEdit::MaxDisrupted([None, Some(few), Some(few), Some(2), Some(-34)][random.index(5)])
}

/// Windows that are closed for a while now and then, or for long.
pub(super) fn windows(random: &Random) -> SpecEdit {
    let most = [None, None, Some(1), Some(2)][random.index(4)];
    let one = |schedule: &'static str, seconds| Opens { schedule, seconds, most };
    SpecEdit::Windows(match random.below(6) {
        0 => vec![one("0 2 * * *", 3600)],
        1 => vec![one(OFTEN, 900), Opens { most: None, ..one("10 * * * *", 900) }],
        2 => Vec::new(),
        _ => vec![one(OFTEN, 900)],
    })
}

/// How long a rollout may wait for new instances.
pub(super) fn progress_deadline(random: &Random) -> SpecEdit {
    SpecEdit::ProgressDeadline([None, Some(60), Some(120), Some(300)][random.index(4)])
}

/// Closed for five minutes of twenty.
const OFTEN: &str = "*/20 * * * *";

/// Whether all windows come again soon.
pub(super) fn opens_soon(windows: &[DisruptionWindow]) -> bool {
    windows.is_empty() || windows.iter().any(|window| window.schedule == OFTEN)
}

fn count(number: i32) -> IntOrString {
    if number < 0 { IntOrString::String(format!("{}%", -number)) } else { IntOrString::Int(number) }
}

/// Edits a spec.
pub(super) fn apply(spec: &mut ASGMachinePoolSpec, edit: &SpecEdit) {
    let strategy = |spec: &mut ASGMachinePoolSpec, type_: RolloutType, budget: Option<RollingUpdate>| {
        let strategy = spec.rollout.get_or_insert_default().strategy.get_or_insert_default();
        strategy.type_ = Some(type_);
        strategy.rolling_update = budget;
        strategy.instance_refresh = None;
    };
    match edit {
        SpecEdit::Image(id) => {
            if spec.machine.image.ssm_parameter.is_none() {
                spec.machine.image.id = Some((*id).to_owned());
            }
        }
        SpecEdit::Volume(size) => {
            spec.machine.root_volume = Some(RootVolume { size_gib: Some(*size), ..RootVolume::default() });
        }
        SpecEdit::Types(types) => {
            spec.instance_types = types.iter().map(|one| InstanceTypeEntry::new(*one)).collect();
        }
        SpecEdit::Subnets(subnets) => {
            let by_id =
                |id: &&str| SubnetSelector { id: Some((*id).to_owned()), ..SubnetSelector::default() };
            spec.subnets = subnets.iter().map(by_id).collect();
        }
        SpecEdit::Tag(value) => drop(spec.tags.insert("team".to_owned(), (*value).to_owned())),
        SpecEdit::Rolling(surge, missing) => strategy(
            spec,
            RolloutType::RollingUpdate,
            Some(RollingUpdate { max_surge: Some(count(*surge)), max_unavailable: Some(count(*missing)) }),
        ),
        SpecEdit::OnDelete => strategy(spec, RolloutType::OnDelete, None),
        // Admission refuses that nobody drains what a refresh ends.
        SpecEdit::Refresh(_) if drain(spec).on_cloud_termination == Some(OnCloudTermination::Ignore) => {}
        SpecEdit::Refresh(preferences) => {
            strategy(spec, RolloutType::InstanceRefresh, None);
            let strategy = spec.rollout.get_or_insert_default().strategy.get_or_insert_default();
            strategy.instance_refresh = Some(preferences.clone());
        }
        SpecEdit::HoldEnds(false) if refreshes(spec) => {}
        SpecEdit::DrainTimeout(limit) => drain(spec).timeout_seconds = *limit,
        SpecEdit::HoldEnds(hold) => {
            let when = if *hold { OnCloudTermination::Drain } else { OnCloudTermination::Ignore };
            drain(spec).on_cloud_termination = Some(when);
        }
        SpecEdit::DrainOnDeletion(drains) => {
            let how = if *drains { OnPoolDeletion::Drain } else { OnPoolDeletion::Terminate };
            drain(spec).on_pool_deletion = Some(how);
        }
        SpecEdit::Bounds(min, max) => (spec.min_size, spec.max_size) = (*min, *max),
        SpecEdit::Newest(newest) => spec.scale_in_order = newest.then_some(ScaleInOrder::Newest),
        SpecEdit::Remediate(replace) => {
            spec.remediation_policy = (!replace).then_some(RemediationPolicy::Ignore);
        }
        SpecEdit::MaxDisrupted(most) => disruption(spec).max_disrupted = most.map(count),
        SpecEdit::Windows(windows) => disruption(spec).windows = windows.iter().map(window).collect(),
        SpecEdit::PauseRollouts(paused) => {
            rollout(spec, |rollout| rollout.mode = paused.then_some(RolloutMode::Paused));
        }
        SpecEdit::Preview(previews) => {
            spec.change_policy = previews.then_some(ChangePolicy::Preview);
        }
        SpecEdit::ProgressDeadline(seconds) => {
            rollout(spec, |rollout| rollout.progress_deadline_seconds = *seconds);
        }
        SpecEdit::Lifetime(seconds) => {
            rollout(spec, |rollout| rollout.max_instance_lifetime_seconds = *seconds);
        }
        SpecEdit::Orphan(orphans) => {
            spec.deletion_policy = orphans.then_some(DeletionPolicy::Orphan);
        }
    }
}

/// Whether AWS is to replace outdated instances.
pub(super) fn refreshes(spec: &ASGMachinePoolSpec) -> bool {
    spec.rollout(0).type_ == RolloutType::InstanceRefresh
}

fn window(opens: &Opens) -> DisruptionWindow {
    DisruptionWindow {
        schedule: opens.schedule.to_owned(),
        duration_seconds: opens.seconds,
        max_disrupted: opens.most.map(count),
        ..DisruptionWindow::default()
    }
}

fn disruption(spec: &mut ASGMachinePoolSpec) -> &mut Disruption {
    spec.disruption.get_or_insert_default()
}

/// What says nothing any more is left away.
fn rollout(spec: &mut ASGMachinePoolSpec, edit: impl FnOnce(&mut Rollout)) {
    let mut rollout = spec.rollout.take().unwrap_or_default();
    edit(&mut rollout);
    spec.rollout = (rollout != Rollout::default()).then_some(rollout);
}

fn drain(spec: &mut ASGMachinePoolSpec) -> &mut Drain {
    spec.drain.get_or_insert_default()
}
