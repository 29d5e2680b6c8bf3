//! `AZRebalance`: zones that drifted apart are balanced by a launch first and an end after it.

use std::collections::BTreeMap;

use super::{Group, Lifecycle, launches, members};
use crate::{
    events::Event,
    region::{Region, State},
    time::millis,
};

/// How many launches that balance zones do not serve yet: 1 or 0. Nobody is ended for them so far.
pub(crate) fn pending(state: &State, group: &Group) -> usize {
    let own = group.rebalancing.as_ref().and_then(|id| state.instances.get(id)?.group.as_ref());
    usize::from(own.is_some_and(|own| own.lifecycle.counts() && own.lifecycle != Lifecycle::InService))
}

/// The emptiest zone, if the fullest has two more and somebody there who may end.
fn emptiest(state: &State, group: &Group) -> Option<String> {
    let subnets = group.subnets.iter().filter_map(|id| state.network.subnets.get(id));
    let mut zones: BTreeMap<&str, (usize, bool)> =
        subnets.map(|subnet| (subnet.zone.as_str(), (0, false))).collect();
    for (instance, own) in members(state, group) {
        // While anything is on its way the picture is not settled.
        if !matches!(own.lifecycle, Lifecycle::InService | Lifecycle::Standby) {
            return None;
        }
        if own.lifecycle.counts() {
            let zone = zones.entry(&instance.zone).or_default();
            zone.0 += 1;
            zone.1 |= !own.protected;
        }
    }
    let (least, place) = zones.iter().map(|(zone, (count, _))| (*count, *zone)).min()?;
    let (most, may_end) = zones.values().copied().max()?;
    (most >= least + 2 && may_end).then(|| place.to_owned())
}

fn wanted(region: &Region, group: &Group) -> Option<String> {
    let suspended = ["AZRebalance", "Launch", "Terminate"].iter().any(|process| group.is_suspended(process));
    if suspended || group.deleting() { None } else { emptiest(&region.state, group) }
}

/// Looks at the zones a while later, if they are out of balance now.
pub(crate) fn schedule(region: &mut Region, name: &str) {
    let Some(group) = region.state.groups.get(name) else { return };
    let at = region.now + millis(region.settings.rebalance_millis);
    if group.rebalance_at.is_some() || wanted(region, group).is_none() {
        return;
    }
    if let Some(group) = region.state.groups.get_mut(name) {
        group.rebalance_at = Some(at);
    }
    region.schedule_at(at, Event::Rebalance(name.to_owned()));
}

/// Launches in the emptiest zone; when that serves, the group has one too many and ends it where most are.
pub(crate) fn look(region: &mut Region, name: &str) {
    let now = region.now;
    let Some(group) = region.state.groups.get_mut(name).filter(|group| group.rebalance_at == Some(now))
    else {
        return;
    };
    group.rebalance_at = None;
    let Some(group) = region.state.groups.get(name) else { return };
    let have = super::counted(&region.state, group);
    if usize::try_from(group.desired) != Ok(have) {
        return;
    }
    let Some(zone) = wanted(region, group) else { return };
    let launched = launches::launch_in(region, name, &zone);
    if let Some(group) = region.state.groups.get_mut(name) {
        group.rebalancing = launched;
    }
    region.reconsider(name);
}
