//! Lets happen what AWS does of itself, or has others ask it for: instance refreshes, and what it announces.

use capasg_fake_aws::{Service, Tree};

use super::{act::Act, spec::ALARM};
use crate::{Pool, World};

/// What has to do with instance refreshes. What AWS answers to others does not matter.
pub(super) fn refresh(world: &World, pool: &Pool, act: &Act) {
    let group = Tree::new().with("AutoScalingGroupName", &pool.group);
    let call = |action: &str, params: Tree| drop(world.aws(Service::AutoScaling, action, params));
    match act {
        Act::RefreshByOthers(kept, skips) => {
            let preferences = Tree::new()
                .with("MinHealthyPercentage", *kept)
                .with("InstanceWarmup", 0)
                .with("SkipMatching", *skips)
                .with("ScaleInProtectedInstances", "Refresh");
            call("StartInstanceRefresh", group.with("Preferences", preferences));
        }
        Act::CancelRefresh => call("CancelInstanceRefresh", group),
        Act::RollRefreshBack => call("RollbackInstanceRefresh", group),
        Act::Alarm(on) => world.simulator.set_alarm(&world.scope(), ALARM, *on),
        _ => {}
    }
}
