//! Decides about a group that exists under the name of a pool with `adoptionPolicy: Adopt`: whether it can become the
//! pool's, what that changes, which is shown first, and the one write that does it, the tags. All else follows from the
//! view that shows them.

use std::collections::BTreeSet;

use capasg_api::{
    names::tags::{ADOPTED_FROM, OWNER_ID, cloud_provider},
    pool::{MOST_PENDING_CHANGES, PendingChange},
};
use capasg_cloud::{Capacity, Group, GroupTag, Instance, TemplateRef, Write};
use chrono::TimeDelta;

use super::super::state::{Case, Desired, LaunchWish, Obstacle, Plan};
use super::{
    differences::{self, LAUNCH_TEMPLATE},
    external,
    launch_template::Pin,
    preview::{change, in_place, outdates},
};

/// Somebody else may have read the group without an owner and tag it after us: it is believed to be ours from a read
/// this much later on.
const CONTENDED: TimeDelta = TimeDelta::seconds(10);
/// The status that shows what changes may be read back this much later.
const SHOWN: TimeDelta = TimeDelta::seconds(1);
/// Longest tag value that AWS takes.
const MAX_TAG_VALUE: usize = 256;
/// What an instance was launched from that names no launch template.
const NO_TEMPLATE: &str = "no-template";
/// Tags by which other controllers know their groups.
const CONTROLLERS: [(&str, &str); 6] = [
    ("sigs.k8s.io/cluster-api-provider-aws/cluster/", "Cluster API Provider AWS"),
    ("eks:nodegroup-name", "an EKS managed node group"),
    ("alpha.eksctl.io/nodegroup-name", "eksctl"),
    ("kops.k8s.io/instancegroup", "kOps"),
    ("aws:cloudformation:stack-name", "CloudFormation"),
    ("elasticbeanstalk:environment-name", "Elastic Beanstalk"),
];

/// Whether the group that stands in the way may become the pool's: one that the pool had already and that lost its tag
/// may not, since somebody took it away.
#[must_use]
pub fn is_asked_for(desired: &Desired, obstacle: &Obstacle) -> bool {
    desired.adopts && desired.provider_id.is_none() && matches!(obstacle, Obstacle::ForeignGroup { .. })
}

/// Plans what the adoption comes to next: a refusal, the difference, or the tags.
pub fn decide(case: &Case<'_>, group: &Group, plan: &mut Plan) {
    let Case { desired, observed, .. } = *case;
    plan.pending = Some(Vec::new());
    if let Some(why) = refusal(desired, group) {
        plan.obstacle = Some(Obstacle::NotAdoptable { why });
        return;
    }
    plan.obstacle = Some(Obstacle::Adopting);
    if matches!(desired.launch, LaunchWish::Unknown) || desired.settings.subnets.is_empty() {
        // A group that could not be put right afterwards is left alone.
        return;
    }
    let changes = changes(case, group);
    let is_shown = changes == desired.shown;
    plan.pending = Some(changes);
    if desired.previews {
        return;
    }
    if !is_shown {
        plan.look_again_within(SHOWN);
        return;
    }
    if !observed.group.is_settled() || !observed.fresh_group {
        plan.needs.fresh_group = true;
        return;
    }
    plan.in_transition = true;
    let mut tags = desired.tags.clone();
    tags.insert(ADOPTED_FROM.to_owned(), GroupTag { value: origins(group), propagate: false });
    plan.cloud(Write::TagGroup { group: desired.group.clone(), tags });
}

/// Whether this process tagged the group so lately that somebody else may still do so, too.
pub fn is_fresh(case: &Case<'_>, plan: &mut Plan) -> bool {
    let Some(at) = case.memory.adopted_at else { return false };
    if case.observed.group.as_of().is_some_and(|as_of| as_of >= at + CONTENDED) {
        return false;
    }
    plan.obstacle = Some(Obstacle::Adopting);
    plan.pending = Some(case.desired.shown.clone());
    let left = at + CONTENDED - case.now;
    if left > TimeDelta::zero() {
        plan.look_again_within(left);
    } else {
        plan.needs.fresh_group = true;
    }
    true
}

/// Whether a write makes a group ours that was not.
#[must_use]
pub fn adopts(write: &Write, plan: &Plan) -> bool {
    plan.obstacle == Some(Obstacle::Adopting) && matches!(write, Write::TagGroup { .. })
}

/// What is about to change, in words.
#[must_use]
pub fn words(plan: &Plan) -> Option<String> {
    let pending = plan.pending.as_ref().filter(|pending| !pending.is_empty())?;
    let one = |change: &PendingChange| format!("{} {} -> {}", change.path, change.from, change.to);
    Some(pending.iter().map(one).collect::<Vec<_>>().join("; "))
}

/// The launch templates that instances of an adopted group were launched from before.
#[must_use]
pub fn adopted_from(group: Option<&Group>) -> BTreeSet<String> {
    let record = group.and_then(|group| group.tags.get(ADOPTED_FROM));
    record.map(|tag| tag.value.split(' ').map(str::to_owned).collect()).unwrap_or_default()
}

/// What an instance was launched from, as the record of an adopted group names it.
#[must_use]
pub fn origin(instance: &Instance) -> &str {
    instance.template.as_ref().map_or(NO_TEMPLATE, |(id, _)| id.as_str())
}

/// The record: the group's template and those of its instances, as many as a tag takes.
fn origins(group: &Group) -> String {
    let mut record = group.settings.launch.template.id.clone();
    let mut known = BTreeSet::from([record.clone()]);
    for instance in &group.instances {
        let from = origin(instance);
        if known.insert(from.to_owned()) && record.len() + from.len() < MAX_TAG_VALUE {
            record.push(' ');
            record.push_str(from);
        }
    }
    record
}

fn live(group: &Group) -> usize {
    group.instances.iter().filter(|instance| instance.lifecycle.is_live()).count()
}

/// Why the group cannot become the pool's as it is, and what to do about it.
fn refusal(desired: &Desired, group: &Group) -> Option<String> {
    let name = &group.name;
    let no = |why: String| Some(format!("Auto Scaling group {name} cannot be adopted: {why}"));
    if let Some(owner) = group.tags.get(OWNER_ID) {
        return no(format!(
            "it belongs to the pool with owner id {}. If that pool is gone, remove the tag {OWNER_ID}.",
            owner.value
        ));
    }
    let controller = group.tags.keys().find_map(|key| {
        let known =
            CONTROLLERS.iter().find(|(tag, _)| key == tag || (tag.ends_with('/') && key.starts_with(tag)));
        known.map(|(_, owner)| (key, owner))
    });
    if let Some((key, owner)) = controller {
        return no(format!(
            "its tag {key} says that {owner} manages it. Have that let go of it, then remove the tag."
        ));
    }
    let other_cluster = group.tags.iter().find(|(key, tag)| {
        key.starts_with(&cloud_provider("")) && tag.value == "owned" && !desired.tags.contains_key(*key)
    });
    if let Some((key, _)) = other_cluster {
        return no(format!("its tag {key} says that its nodes are of another cluster."));
    }
    if group.is_deleting() {
        return no("AWS is deleting it.".to_owned());
    }
    if group.settings.launch.template.id.is_empty() {
        return no("it uses a launch configuration. Give it a launch template.".to_owned());
    }
    let has = group.capacity.desired;
    let asked = desired.machine_pool.as_ref().map_or(desired.replicas, |owner| owner.replicas);
    if has != asked {
        return no(format!(
            "its desired capacity is {has}, and the MachinePool asks for {asked} replicas. Set spec.replicas of the \
             MachinePool to {has}, so that nothing is launched or ended; scale afterwards."
        ));
    }
    if has != desired.replicas {
        return no(format!("its desired capacity of {has} is not within spec.minSize and spec.maxSize."));
    }
    let runs = live(group);
    if i32::try_from(runs).ok() != Some(has) {
        return no(format!(
            "{runs} instances run where {has} are desired. Wait until they are as many; a group with weights cannot be \
             adopted."
        ));
    }
    None
}

/// Everything that changes with the adoption, by path.
fn changes(case: &Case<'_>, group: &Group) -> Vec<PendingChange> {
    let wish = Desired { previews: false, ..case.desired.clone() };
    let case = Case { desired: &wish, ..*case };
    let pin = Pin::Version(TemplateRef { id: wish.template.clone(), version: Some(1) });
    let mut told = Plan::default();
    differences::compare(&case, group, &pin, false).tell(&case, &mut told);
    let runs = live(group);
    let mut changes = vec![change(
        "Auto Scaling group",
        &format!("{}, owned by nobody", group.name),
        "this pool's",
        format!("Adopts {runs} instances"),
    )];
    for difference in told.differences {
        changes.push(if difference.path == LAUNCH_TEMPLATE {
            change(LAUNCH_TEMPLATE, &difference.seen, &wish.template, outdates(runs))
        } else {
            change(&difference.path, &difference.seen, &difference.wanted, in_place())
        });
    }
    let (have, Capacity { min, max, .. }) = (group.capacity, external::at_creation(&wish));
    for (path, seen, wanted) in [("group.minSize", have.min, min), ("group.maxSize", have.max, max)] {
        if seen != wanted {
            changes.push(change(path, &seen.to_string(), &wanted.to_string(), in_place()));
        }
    }
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes.truncate(MOST_PENDING_CHANGES);
    changes
}
