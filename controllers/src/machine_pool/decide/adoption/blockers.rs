//! Why a group cannot be adopted as it is, and what to do about it.

use capasg_api::names::annotations::{AUTOSCALER_MAX_SIZE, AUTOSCALER_MIN_SIZE};
use capasg_api::names::tags::{ADOPTABLE_BY, IDENTITY, cloud_provider};
use capasg_cloud::Group;

use crate::machine_pool::model::{Desired, counted, instances};

/// Tags by which other controllers know their groups, and whether they can stop managing a group.
const CONTROLLERS: [(&str, &str, bool); 6] = [
    ("sigs.k8s.io/cluster-api-provider-aws/cluster/", "Cluster API Provider AWS", true),
    ("eks:nodegroup-name", "an EKS managed node group", false),
    ("alpha.eksctl.io/nodegroup-name", "eksctl", true),
    ("kops.k8s.io/instancegroup", "kOps", true),
    ("aws:cloudformation:stack-name", "CloudFormation", false),
    ("elasticbeanstalk:environment-name", "Elastic Beanstalk", false),
];

/// Why the group cannot be adopted as it is, and what to do about it.
pub(super) fn blocker(desired: &Desired, group: &Group) -> Option<String> {
    let name = &group.name;
    let no = |why: String| Some(format!("Auto Scaling group {name} cannot be adopted: {why}"));
    if let Some(why) = &desired.adoption_denied {
        return no(format!("{why}."));
    }
    if let Some(key) = IDENTITY.iter().find(|key| group.tags.contains_key(**key)) {
        return no(format!(
            "its tag {key} indicates that another ASGMachinePool owns it. If that pool does not exist any more, remove \
             the tags of CAPASG from the group."
        ));
    }
    let own = format!("{}/{}", desired.pool.namespace, desired.pool.name);
    let of_namespace = format!("{}/*", desired.pool.namespace);
    let named = group.tags.get(ADOPTABLE_BY).map(|tag| tag.value.as_str());
    if named != Some(own.as_str()) && named != Some(of_namespace.as_str()) {
        return no(format!(
            "it has no tag {ADOPTABLE_BY} with the value {own} or {of_namespace}, by which an administrator of the AWS \
             account allows it."
        ));
    }
    let controller = group.tags.keys().find_map(|key| {
        let known =
            CONTROLLERS.iter().find(|(tag, ..)| key == tag || (tag.ends_with('/') && key.starts_with(tag)));
        known.map(|(_, owner, releases)| (key, owner, *releases))
    });
    if let Some((key, owner, releases)) = controller {
        let advice = if releases {
            format!("Stop managing the group with {owner}, then remove the tag.")
        } else {
            format!("A group of {owner} cannot be adopted.")
        };
        return no(format!("its tag {key} indicates that {owner} manages it. {advice}"));
    }
    let other_cluster = group.tags.iter().find(|(key, tag)| {
        key.starts_with(&cloud_provider("")) && tag.value == "owned" && !desired.tags.contains_key(*key)
    });
    if let Some((key, _)) = other_cluster {
        return no(format!(
            "its tag {key} indicates that its nodes belong to another cluster. Remove them from that \
             cluster, then remove the tag."
        ));
    }
    if group.is_deleting() {
        return no("AWS is deleting it.".to_owned());
    }
    if group.settings.launch.template.id.is_empty() {
        return no("it uses a launch configuration. Switch it to a launch template.".to_owned());
    }
    let has = group.capacity.desired;
    let requested = desired.machine_pool.as_ref().map_or(desired.replicas, |owner| owner.replicas);
    if has != requested {
        return no(format!(
            "its desired capacity is {has}, and the MachinePool requests {}. Set spec.replicas of the \
             MachinePool to {has}, so that nothing is launched or terminated; scale afterwards.",
            counted(requested, "replica")
        ));
    }
    if has != desired.replicas {
        // Within the limits, the nearest number of replicas is the limit that does not hold.
        let limit = desired.replicas;
        let (is, field, annotation) = if has < limit {
            (format!("less than minSize {limit}"), "spec.minSize", AUTOSCALER_MIN_SIZE)
        } else {
            (format!("greater than maxSize {limit}"), "spec.maxSize", AUTOSCALER_MAX_SIZE)
        };
        return no(format!(
            "its desired capacity {has} is {is}. Change {field}, or annotation {annotation} of the MachinePool."
        ));
    }
    let runs = instances::live_listed(group);
    if i32::try_from(runs).ok() != Some(has) {
        return no(format!(
            "it has {} and desired capacity {has}. Wait until both numbers are equal; a group with instance \
             weights (WeightedCapacity) cannot be adopted.",
            counted(runs, "instance")
        ));
    }
    None
}
