//! Watches whether launches succeed: reads scaling activities when they are worth it, and publishes what they tell;
//! `report` writes it into the status.

mod watch;

use capasg_api::names::{annotations, events};
use capasg_cloud::Inventory;
use kube::ResourceExt;

pub use watch::{Blocked, LaunchWatch, Learnt, Names, Place, Seen, Wish};

use super::{
    decide::{launch_template, members},
    memory::PoolMemory,
    news,
    observe::{References, Scene},
    report,
    state::{Observed, Obstacle, Plan},
};
use crate::{Context, kubernetes::EventKind};

/// What the watch of launches looks at.
pub struct Look<'a> {
    /// The facts.
    pub observed: &'a Observed,
    /// What was decided.
    pub plan: &'a Plan,
    /// What the pool's subnets are.
    pub references: &'a References,
}

/// Looks whether launches succeed, and reads why not if it is time. One event for each reason until they succeed again.
pub async fn look(
    context: &Context,
    inventory: &Inventory,
    scene: &Scene,
    look: &Look<'_>,
    memory: &mut PoolMemory,
) {
    let now = context.clock.now();
    let Look { observed, plan, references } = *look;
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
    let seen = Seen {
        desired: group.capacity.desired,
        live: members::live_count(observed),
        in_service: members::in_service_count(observed),
        is_trying: !group.suspended_processes.contains_key("Launch"),
        wish: Wish { launch, retry: scene.pool.annotations().get(annotations::RETRY).cloned() },
    };
    memory.launches.see(&seen, scene.pool.status.as_ref(), now);
    if memory.launches.is_due(now) {
        let read = inventory.scaling_activities(&group.name).await;
        if let Err(error) = &read {
            tracing::warn!(api = error.api, code = %error.code, message = %error.message, "why instances lack is not known");
        }
        let zones = references.zones.iter().map(|subnet| (subnet.id.clone(), subnet.zone.clone())).collect();
        let names = Names { types: &scene.pool.spec.instance_types, zones: &zones };
        let learnt = memory.launches.learn(read, names, context.clock.now());
        for obstacle in learnt.counted {
            context.observer.launch_failed(report::launches::reason(obstacle));
        }
        if let Some(blocked) = memory.launches.blocked().filter(|_| learnt.is_news) {
            let message = report::launches::words(blocked);
            news::event(context, scene, EventKind::Warning, events::LAUNCH_FAILED, message).await;
        }
    }
    memory.decide.launches_fail = memory.launches.blocked().is_some();
}
