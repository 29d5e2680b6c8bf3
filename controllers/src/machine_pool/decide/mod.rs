//! Decide: a pure function from the wish and the facts to a plan. No IO, no clock, no client.

pub mod adoption;
pub mod budget;
pub mod capacity;
pub mod deadline;
pub mod deletion;
pub mod differences;
pub mod endings;
pub mod external;
pub mod group;
pub mod in_flight;
pub mod launch_template;
pub mod machines;
pub mod members;
pub mod notices;
pub mod preview;
pub mod refresh;
pub mod remediation;
pub mod resume;
pub mod rolling;
pub mod rollout;

use super::state::{Case, Plan, Step};
use group::Standing;

/// Decides what to do for a pool that is not being deleted.
///
/// Steps come in the order of their urgency: ends and Kubernetes first, then the template, settings, capacity, and
/// what nobody waits for. Act stops at a step that fails, so that a later one never overtakes an earlier.
#[must_use]
pub fn decide(case: &Case<'_>) -> Plan {
    let Case { desired, observed, .. } = *case;
    let mut plan = Plan::default();
    let mut launches = Plan::default();
    let pin = launch_template::decide(desired, observed, &mut launches);
    plan.needs.user_data = launches.needs.user_data;
    plan.obstacle = launches.obstacle.take();
    if plan.obstacle.is_some() {
        return plan;
    }
    let group = match group::standing(case, &pin, &mut plan) {
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
    let outdated = rollout::outdated(desired, observed, case.now);
    let refresh = refresh::look(case, group, &pin, &outdated);
    refresh.ask(case, &mut plan);
    let progress = follow(case, group, &pin, &outdated, &refresh, &mut plan);
    let rolled = rolling::surge(case, group, &outdated, progress);
    let surge = rolled + notices::surge(case, &outdated, rolled);
    let target = capacity::target(desired, surge);
    plan.target = Some(target);
    notices::decide(case, &mut plan);
    if settled {
        endings::ours(case, group, target, &mut plan);
        endings::in_the_group(case, &mut plan);
    }
    machines::departed(case, false, &mut plan);
    machines::timeouts(case, &mut plan);
    plan.steps.append(&mut launches.steps);
    let compared = differences::compare(case, group, &pin, refresh.holds_launch());
    if settled {
        plan.steps.extend(compared.settings(&desired.group).map(Step::Cloud));
        refresh.end(case, &mut plan);
    }
    // An end changes desired and what lives: bounds and desired of this view would undo the decrement, and the group
    // would launch again what it was made to give up. They follow from the view that shows the end.
    // One thing after another: what is too many goes, then what is unhealthy, then what is outdated, each seen by the next.
    if !plan.ends_instances()
        && !refresh.is_news(case)
        && capacity::decide(case, group, target, &outdated, &refresh, &mut plan)
        && !remediation::decide(case, target, &outdated, &mut plan)
    {
        rolling::decide(case, &outdated, progress, &mut plan);
        refresh.start(case, group, &pin, &mut plan);
    }
    if settled {
        differences::bounds(case, group, &mut plan);
        plan.steps.extend(compared.attachments(&desired.group).into_iter().map(Step::Cloud));
        plan.needs.hook |= observed.hook.is_none();
        resume::decide(case, group, &mut plan);
        launch_template::prune(observed, &pin, &mut plan);
    }
    compared.tell(case, &mut plan);
    plan
}

/// Tells how far the rollout may go, and stops it where its progress deadline has passed.
fn follow(
    case: &Case<'_>,
    group: &capasg_cloud::Group,
    pin: &launch_template::Pin,
    outdated: &rollout::Outdated,
    refresh: &refresh::Refresh<'_>,
    plan: &mut Plan,
) -> rolling::Progress {
    let mut progress = if refresh.takes_over() {
        rolling::Progress::Refreshing
    } else {
        rolling::progress(case, group, pin)
    };
    plan.follows_rollout = true;
    plan.rollout = refresh.phase(case, outdated).or_else(|| rolling::phase(case, outdated, progress));
    plan.rollout_status = deadline::follow(case, outdated, plan.rollout.as_ref());
    if let Some(mark) = refresh.failed().and_then(|end| deadline::mark(case, Some(end))) {
        plan.kubernetes(mark);
    }
    match deadline::left(case, plan.rollout_status.as_ref()) {
        // What AWS does not answer may be there.
        Some(left) if left <= chrono::TimeDelta::zero() && !case.memory.blind => {
            // The mark comes first: nothing that follows from it is done unless it is there.
            if let Some(mark) = deadline::mark(case, None) {
                plan.kubernetes(mark);
                progress = rolling::Progress::Stopped;
                plan.rollout = rolling::phase(case, outdated, progress);
                plan.rollout_status = deadline::follow(case, outdated, plan.rollout.as_ref());
            }
        }
        Some(left) => plan.look_again_within(left),
        None => {}
    }
    if let Some(status) = &mut plan.rollout_status {
        status.ended_refresh_id = refresh.ended(case);
    }
    // A preview rolls out nothing, so that nothing of a rollout is over.
    if !case.desired.previews
        && let Some(write) = deadline::stale_mark(case, plan.rollout.as_ref())
    {
        plan.kubernetes(write);
    }
    if let Some(wait) = rollout::until_next(case) {
        plan.look_again_within(wait);
    }
    progress
}

#[cfg(test)]
mod deletion_tests;
#[cfg(test)]
mod external_tests;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
