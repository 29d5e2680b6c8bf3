//! Replacement of single members: at once, or after what takes their place serves, where an `InstanceMaintenancePolicy`
//! allows more than 100 % or the group has `CapacityRebalance`.
//!
//! User Guide, "Instance maintenance policies": with a minimum of 100 % and a maximum above it a new instance is launched,
//! and serves, before an unhealthy one is terminated; the group may exceed its desired capacity, and its maximum size,
//! meanwhile. "Capacity Rebalancing": a Spot instance that EC2 recommends to replace is terminated once its replacement
//! serves. Guesses: a machine that does not run any more is not waited for; warm-up does not count.

use super::{Group, Lifecycle, ends, group::Why, members, membership};
use crate::{
    ec2::{Instance, Market},
    events::Event,
    region::{Region, State},
    time::timestamp,
};

impl Why {
    fn words(self) -> &'static str {
        match self {
            Self::Unhealthy => "a health check that found it unhealthy",
            Self::AtRisk => "an EC2 instance rebalance recommendation",
        }
    }
}

/// The percentages of the group's policy, if it allows more than there is to be.
fn policy(group: &Group) -> Option<(i64, i64)> {
    let policy = group.attributes.get("InstanceMaintenancePolicy")?;
    let percent = |name: &str| policy.number_of(name);
    percent("MinHealthyPercentage").zip(percent("MaxHealthyPercentage")).filter(|(_, most)| *most > 100)
}

/// How many of the members have to serve before one of these goes; `None` if it goes at once.
fn least(group: &Group, why: Why) -> Option<i64> {
    if group.is_suspended("Launch") || group.deleting() {
        return None;
    }
    match (why, policy(group)) {
        (_, Some((least, _))) => Some((group.desired * least + 99) / 100),
        (Why::AtRisk, None) => group.flag("CapacityRebalance").then_some(group.desired),
        (Why::Unhealthy, None) => None,
    }
}

/// How many may be launched beyond desired capacity now.
pub(crate) fn extra(state: &State, group: &Group) -> usize {
    let waiting = members(state, group)
        .filter(|(one, own)| own.lifecycle.counts() && group.replacing.contains_key(&one.id))
        .count();
    let most = policy(group).map_or(10, |(_, most)| most - 100);
    let room = usize::try_from(group.desired * most / 100).unwrap_or_default().max(1);
    waiting.min(room)
}

/// A member is to be replaced: it ends now, or once enough others serve.
pub(crate) fn begin(region: &mut Region, id: &str, why: Why) {
    let Some(own) = membership(region, id).filter(|own| !own.lifecycle.ending()) else { return };
    let name = own.group.clone();
    let runs = region.state.instances.get(id).is_some_and(Instance::exists);
    let Some(group) = region.state.groups.get(&name) else { return };
    let serving = members(&region.state, group).filter(|(one, own)| {
        own.lifecycle == Lifecycle::InService && own.healthy && !group.replacing.contains_key(&one.id)
    });
    let serving = i64::try_from(serving.filter(|(one, _)| one.id != id).count()).unwrap_or(i64::MAX);
    if runs && least(group, why).is_some_and(|least| serving < least) {
        let event = match why {
            Why::Unhealthy => Event::Replace(id.to_owned()),
            Why::AtRisk => Event::AtRisk(id.to_owned()),
        };
        if let Some(group) = region.state.groups.get_mut(&name) {
            group.replacing.insert(id.to_owned(), why);
        }
        region.reconsider(&name);
        region.schedule(region.settings.refresh_millis.max(1_000), event);
        return;
    }
    let words = why.words();
    let cause =
        format!("At {} an instance was taken out of service in response to {words}.", timestamp(region.now));
    ends::begin(region, id, &cause);
}

/// What was to be replaced stays.
pub(crate) fn forget(region: &mut Region, id: &str, why: Why) {
    let Some(name) = membership(region, id).map(|own| own.group.clone()) else { return };
    if let Some(group) = region.state.groups.get_mut(&name)
        && group.replacing.get(id) == Some(&why)
    {
        group.replacing.remove(id);
        region.reconsider(&name);
    }
}

/// EC2 recommends to replace a machine: its group does so if it is to.
pub(crate) fn recommended(region: &mut Region, id: &str) {
    let spot = region.state.instances.get(id).is_some_and(|one| one.market == Market::Spot);
    let Some(own) = membership(region, id).filter(|own| spot && own.lifecycle == Lifecycle::InService) else {
        return;
    };
    let name = own.group.clone();
    if region.state.groups.get(&name).is_some_and(|group| group.flag("CapacityRebalance")) {
        region.schedule(region.settings.replace_millis, Event::AtRisk(id.to_owned()));
    }
}

/// The group goes on with the replacement of a machine at risk, if it still has rebalancing and the machine serves.
pub(crate) fn at_risk(region: &mut Region, id: &str) {
    let Some(own) = membership(region, id) else { return };
    let (name, serves) = (own.group.clone(), own.lifecycle == Lifecycle::InService);
    let Some(group) = region.state.groups.get(&name) else { return };
    if serves && group.flag("CapacityRebalance") && !group.is_suspended("Terminate") {
        begin(region, id, Why::AtRisk);
    } else {
        forget(region, id, Why::AtRisk);
    }
}
