//! `changePolicy: Preview`: the desired state gets the values that AWS has, so that nothing is changed, and the changes
//! are reported. Capacity, drains and terminations are not part of a preview, and continue.

mod changes;

use capasg_api::pool::{PendingChange, RolloutMode};
use capasg_cloud::{Group, GroupSettings};

use crate::machine_pool::decide::launch_template::{launched, renewed};
use crate::machine_pool::model::ownership::is_owned;
use crate::machine_pool::model::template_versions::pinned_content;
use crate::machine_pool::model::{Comparison, Desired, DesiredLaunch, DesiredSettings, GroupView, Input};

/// The desired state with the changes that `Preview` defers removed, and those changes.
#[derive(Debug)]
pub struct Held {
    /// The desired state with the values that AWS has.
    pub desired: Desired,
    /// The changes that are reported; `None` while they are unknown.
    pub pending: Option<Vec<PendingChange>>,
    /// The group compared with the spec, once the pool owns it.
    pub compared: Option<Comparison>,
}

/// Gives the desired state the values that AWS has; `None` without a preview.
#[must_use]
pub fn hold(input: &Input<'_>) -> Option<Held> {
    let Input { desired, observed, .. } = *input;
    if !desired.previews {
        return None;
    }
    let mut held = desired.clone();
    held.rollout.mode = RolloutMode::Paused;
    match &observed.group {
        GroupView::Present { group, .. } if is_owned(desired, group) => {
            held.launch = renewed(input);
            hold_settings(&mut held, input, group);
            let (pending, compared) = changes::changes(input, group);
            Some(Held { desired: held, pending: Some(pending), compared: Some(compared) })
        }
        // The pool does not own it; whether it is adopted is decided in `adoption`.
        GroupView::Present { .. } => Some(Held { desired: held, pending: None, compared: None }),
        other => {
            // Nothing is created without a version.
            held.launch = DesiredLaunch::Unknown;
            let absent = matches!(other, GroupView::Absent { .. });
            let pending = absent.then(|| changes::creations(desired, observed));
            Some(Held { desired: held, pending, compared: None })
        }
    }
}

fn hold_settings(held: &mut Desired, input: &Input<'_>, group: &Group) {
    let observed = input.observed;
    let launch = launched(input, group).unwrap_or(&group.settings.launch).clone();
    let seen = GroupSettings { launch, ..group.settings.clone() };
    let launched = pinned_content(observed).map(|content| content.instance_type.clone()).into_iter();
    let launched = launched.chain(seen.launch.mixed.iter().flat_map(|mixed| mixed.instance_types.clone()));
    for one in launched {
        if !held.instance_types.contains(&one) {
            held.instance_types.push(one);
        }
    }
    held.settings = DesiredSettings {
        mixed: seen.launch.mixed,
        subnets: seen.subnets,
        health_check_types: seen.health_check_types,
        health_check_grace_period: seen.health_check_grace_period,
        default_cooldown: seen.default_cooldown,
        default_instance_warmup: seen.default_instance_warmup,
        protect_new_instances: seen.protect_new_instances,
        capacity_rebalance: seen.capacity_rebalance,
        maintenance_policy: seen.maintenance_policy,
        retains_abandoned: seen.retains_abandoned,
    };
    held.tags.clone_from(&group.tags);
    if observed.hook.is_read() {
        held.hook = observed.hook.present().cloned();
    }
}
