//! Decide: a pure function from the wish and the facts to a plan. No IO, no clock, no client.

pub mod capacity;
pub mod deletion;
pub mod endings;
pub mod group;
pub mod launch_template;
pub mod machines;
pub mod members;
pub mod rollout;

use chrono::{DateTime, Utc};

use super::state::{Desired, Memory, Observed, Plan};
use group::Standing;

/// Decides what to do for a pool that is not being deleted.
///
/// Steps come in the order of their urgency: ends and Kubernetes first, then the template, settings, capacity, and
/// what nobody waits for. Act stops at a step that fails, so that a later one never overtakes an earlier.
#[must_use]
pub fn decide(
    desired: &Desired,
    observed: &Observed,
    memory: &Memory,
    namespace: &str,
    now: DateTime<Utc>,
) -> Plan {
    let mut plan = Plan::default();
    let mut launches = Plan::default();
    let pin = launch_template::decide(desired, observed, &mut launches);
    plan.needs.user_data = launches.needs.user_data;
    plan.obstacle = launches.obstacle.take();
    if plan.obstacle.is_some() {
        return plan;
    }
    let group = match group::standing(desired, observed, memory, &pin, &mut plan) {
        Standing::Ours(group) => group,
        Standing::Wait => {
            // A version must exist before the group; ends and Machines need the group.
            if plan.obstacle.is_none() && !matches!(observed.group, super::state::GroupView::Unknown) {
                plan.steps.splice(0..0, launches.steps);
            }
            return plan;
        }
    };
    let settled = observed.group.is_settled();
    let outdated = rollout::outdated(desired, observed);
    if settled {
        endings::ours(desired, observed, group, desired.replicas, memory, namespace, now, &mut plan);
        endings::in_the_group(desired, observed, memory, namespace, now, &mut plan);
    }
    machines::departed(observed, memory, namespace, now, &mut plan);
    plan.steps.append(&mut launches.steps);
    if settled {
        group::settings(desired, group, &pin, &mut plan);
    }
    capacity::decide(desired, observed, group, settled, &outdated, memory, namespace, &mut plan);
    if settled {
        group::attachments(desired, observed, group, &mut plan);
        launch_template::prune(observed, &pin, &mut plan);
    }
    plan
}
