//! What a group has in addition to its settings: tags, suspended processes, scale-in protection of instances, our hook.

use std::collections::BTreeSet;

use capasg_cloud::{Group, GroupTag, LifecycleHook};

use crate::machine_pool::decide::settings::attribute::{Attribute, Correction, List};
use crate::machine_pool::decide::settings::text::{NOTHING, joined, tag_path};
use crate::machine_pool::model::{Desired, Observed, PoolMemory, instances};
use crate::names::{is_record, recorded_keys, tags_until_removed, unrecorded_keys};

/// The beginning of the reason of a process that a user suspended. A process that AWS suspends by itself has another
/// reason.
const BY_A_USER: &str = "User suspended";
const PROCESSES: &str = "spec.group.suspendedProcesses";
const LAUNCH: &str = "Launch";
const DRAINS: &str = "spec.drain.onCloudTermination";
/// It follows from `spec.drain.timeoutSeconds`, within limits of its own.
const HEARTBEAT_TIMEOUT: &str = "HeartbeatTimeout of lifecycle hook asg-drain";

/// Our tags are corrected, and removed if they are no longer desired; tags of other actors are not changed. Ours are
/// those that the pool recorded as its own.
pub(super) fn group_tags(list: &mut List, desired: &Desired, group: &Group) {
    let text = |tag: &Option<GroupTag>| match tag {
        None => NOTHING.to_owned(),
        Some(GroupTag { value, propagate: true }) => format!("{value:?}"),
        Some(GroupTag { value, propagate: false }) => format!("{value:?}, not on instances"),
    };
    let recorded = recorded_keys(&group.tags);
    let is_stale = |key: &&String| !is_record(key) && !desired.tags.contains_key(*key);
    let stale: BTreeSet<String> = recorded.iter().filter(is_stale).cloned().collect();
    let until_removed = (!stale.is_empty()).then(|| tags_until_removed(&desired.tags, &group.tags, &stale));
    // While the record of the group cannot name a new key, the tag would stay if it left the spec again.
    let held = until_removed.as_ref().map(|tags| unrecorded_keys(&desired.tags, tags)).unwrap_or_default();
    let wanted = until_removed.as_ref().unwrap_or(&desired.tags);
    for (key, tag) in wanted {
        let pair = (&Some(tag.clone()), &group.tags.get(key).cloned());
        list.add(tag_path(key), pair, text, Correction::Tag(key.clone(), tag.clone()));
        if let Some(added) = list.0.last_mut().filter(|_| held.contains(key)) {
            added.corrections.clear();
        }
    }
    for key in recorded {
        if let (None, Some(tag)) = (wanted.get(&key), group.tags.get(&key)) {
            list.add(tag_path(&key), (&None, &Some(tag.clone())), text, Correction::Untag(key));
        }
    }
}

/// Processes of the desired state are suspended, and those that another actor suspended are resumed, with two
/// exceptions. What AWS suspended by itself would be suspended again until its cause is corrected. And `Launch` is
/// resumed only if the desired state named it before: users stop a group by it, and so does a deletion during which a
/// pool is moved.
pub(super) fn processes(list: &mut List, desired: &Desired, group: &Group, memory: &PoolMemory) {
    let wanted = &desired.suspended_processes;
    if desired.previews {
        // The value that they last agreed on is kept until the preview ends.
        if let Some(before) = memory.drift.agreed(PROCESSES) {
            list.0.push(Attribute {
                path: PROCESSES.to_owned(),
                seen: before.clone(),
                wanted: before.clone(),
                differs: false,
                corrections: Vec::new(),
            });
        }
        return;
    }
    let desired_before = |name: &str| {
        memory.drift.agreed(PROCESSES).is_some_and(|before| before.split(", ").any(|one| one == name))
    };
    let seen: BTreeSet<String> = group
        .suspended_processes
        .iter()
        .filter(|(name, reason)| {
            wanted.contains(*name)
                || (reason.starts_with(BY_A_USER) && (*name != LAUNCH || desired_before(name)))
        })
        .map(|(name, _)| name.clone())
        .collect();
    let missing: BTreeSet<String> = wanted.difference(&seen).cloned().collect();
    let surplus: BTreeSet<String> = seen.difference(wanted).cloned().collect();
    let mut corrections = Vec::new();
    if !missing.is_empty() {
        corrections.push(Correction::Suspend(missing));
    }
    if !surplus.is_empty() {
        corrections.push(Correction::Resume(surplus));
    }
    list.0.push(Attribute {
        path: PROCESSES.to_owned(),
        seen: joined(&seen),
        wanted: joined(wanted),
        differs: *wanted != seen,
        corrections,
    });
}

/// The group never chooses victims itself (D13): an instance in service that is not protected (adopted, returned from
/// standby) becomes protected.
pub(super) fn protection(list: &mut List, observed: &Observed) {
    let unprotected: BTreeSet<String> = instances::in_service(observed)
        .filter(|(_, instance)| !instance.protected)
        .map(|(id, _)| id.clone())
        .collect();
    list.0.push(Attribute {
        path: "scale-in protection".to_owned(),
        seen: if unprotected.is_empty() {
            "on".to_owned()
        } else {
            format!("off for {}", joined(&unprotected))
        },
        wanted: "on".to_owned(),
        differs: !unprotected.is_empty(),
        corrections: vec![Correction::Protect(unprotected)],
    });
}

/// Our lifecycle hook, once it was read; other hooks are not changed.
pub(super) fn hook(list: &mut List, desired: &Desired, observed: &Observed) {
    if !observed.hook.is_read() {
        return;
    }
    let have = &observed.hook.present().cloned();
    let text = |hook: &Option<LifecycleHook>| if hook.is_some() { "Drain" } else { "Ignore" }.to_owned();
    match (&desired.hook, have) {
        (None, None) => {}
        (None, Some(hook)) => {
            list.add(DRAINS, (&None, have), text, Correction::DeleteHook(hook.name.clone()));
        }
        (Some(wanted), None) => {
            list.add(DRAINS, (&desired.hook, have), text, Correction::PutHook(wanted.clone()));
        }
        (Some(wanted), Some(seen)) => {
            let put = || Correction::PutHook(wanted.clone());
            list.add(DRAINS, (&(), &()), |()| "Drain".to_owned(), put());
            let seconds = (&wanted.heartbeat_timeout, &seen.heartbeat_timeout);
            list.add(HEARTBEAT_TIMEOUT, seconds, ToString::to_string, put());
            let result = |hook: &LifecycleHook| (hook.default_result.clone(), hook.transition.clone());
            let text = |(result, transition): &(String, String)| {
                format!("default result {result}, transition {transition}")
            };
            list.add("lifecycle hook asg-drain", (&result(wanted), &result(seen)), text, put());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use capasg_cloud::Write;

    use super::*;
    use crate::machine_pool::decide::testing::{Stage, cloud};

    fn tags_of(prefix: &str, count: usize) -> BTreeMap<String, GroupTag> {
        let user = (0..count).map(|number| (format!("{prefix} {number}"), "a".to_owned())).collect();
        crate::names::group_tags(&user, "me", "ns", "c", "p")
    }

    /// The process may end after each call, and the spec may change before the next.
    #[test]
    fn w6_every_key_is_recorded_before_its_tag_exists() {
        let mut stage = Stage::new(1);
        stage.group().tags = tags_of("old", 5);
        stage.desired.tags = tags_of("new", 40);
        for is_done in [false, false, true] {
            let plan = stage.plan();
            assert_eq!(plan.differences.is_empty(), is_done, "{:?}", plan.differences);
            for write in cloud(&plan) {
                let tags = &mut stage.group().tags;
                match write.clone() {
                    Write::TagGroup { tags: set, .. } => tags.extend(set),
                    Write::UntagGroup { keys, .. } => tags.retain(|key, _| !keys.contains(key)),
                    other => panic!("not expected: {other:?}"),
                }
                let mut users = tags.clone();
                users.retain(|key, _| key.starts_with("old ") || key.starts_with("new "));
                let recorded = recorded_keys(tags);
                assert!(users.keys().all(|key| recorded.contains(key)), "{tags:?}");
            }
        }
        let wanted = stage.desired.tags.clone();
        assert_eq!(stage.group().tags, wanted);
    }
}
