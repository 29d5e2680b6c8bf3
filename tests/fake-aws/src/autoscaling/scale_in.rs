//! The group's own choice of whom to end when it has more than it should.

use std::collections::BTreeMap;

use super::{Group, Lifecycle, Membership, activities, ends, members};
use crate::{ec2::Instance, region::Region};

/// Ends up to `count` members that protection does not keep.
pub(crate) fn end(region: &mut Region, name: &str, count: usize) {
    for _ in 0..count {
        let Some(group) = region.state.groups.get(name) else { return };
        let Some(victim) = victim(region, group) else {
            blocked(region, name);
            return;
        };
        let cause = activities::difference(region.now, "an instance was taken out of service", "shrinking");
        ends::begin(region, &victim, &cause);
    }
}

/// The next to end: unhealthy ones first and outside the policy; else from the zone with most instances, by policy.
fn victim(region: &Region, group: &Group) -> Option<String> {
    let mut zones: BTreeMap<&str, usize> = BTreeMap::new();
    let counting: Vec<(&Instance, &Membership)> =
        members(&region.state, group).filter(|(_, own)| own.lifecycle.counts()).collect();
    for (instance, _) in &counting {
        *zones.entry(&instance.zone).or_default() += 1;
    }
    // Protection begins at `InService`.
    let open = |own: &Membership| own.lifecycle != Lifecycle::InService || !own.protected;
    let candidates = || counting.iter().filter(|(_, own)| open(own));
    if let Some((instance, _)) = candidates().find(|(_, own)| !own.healthy) {
        return Some(instance.id.clone());
    }
    let fullest =
        candidates().filter_map(|(instance, _)| zones.get(instance.zone.as_str())).max().copied()?;
    let policies = group.attributes.get("TerminationPolicies");
    let policies: Vec<&str> =
        policies.map(|list| list.items().iter().filter_map(crate::Tree::text).collect()).unwrap_or_default();
    candidates()
        .filter(|(instance, _)| zones.get(instance.zone.as_str()) == Some(&fullest))
        .min_by_key(|(instance, own)| rank(&policies, group, instance, own))
        .map(|(instance, _)| instance.id.clone())
}

/// Sorts by the policies in their order; smaller goes first.
fn rank(policies: &[&str], group: &Group, instance: &Instance, own: &Membership) -> Vec<i64> {
    let other_template =
        i64::from(own.template.as_ref().is_some_and(|from| from.id == group.source.template().id));
    let version = own.template.as_ref().map_or(0, |from| i64::try_from(from.number).unwrap_or(i64::MAX));
    let launched = instance.launched.timestamp_millis();
    let mut ranks = Vec::new();
    for policy in policies {
        match *policy {
            "OldestInstance" => ranks.push(launched),
            "NewestInstance" => ranks.push(-launched),
            // The nearest billing hour has no meaning here; the oldest stands for it.
            "Default" => ranks.extend([other_template, version, launched]),
            "OldestLaunchTemplate" => ranks.extend([other_template, version]),
            _ => {}
        }
    }
    ranks
}

/// Nothing may end: an activity says so, once for each desired capacity, and desired stays as it is.
fn blocked(region: &mut Region, name: &str) {
    let Some(group) = region.state.groups.get_mut(name) else { return };
    if group.blocked_at == Some(group.desired) {
        return;
    }
    group.blocked_at = Some(group.desired);
    let words =
        "Could not scale to desired capacity because all remaining instances are protected from scale in.";
    let cause = activities::difference(region.now, "a difference was found", "shrinking");
    let sequence = activities::begin(region, name, words, &cause, None);
    activities::finish(region, name, sequence, activities::Status::Cancelled, Some(words));
}
