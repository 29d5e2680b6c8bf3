//! Every field of a spec, by its path: what it does to the hashes of a launch-template version.

use crate::machine_pool::model::{BootstrapDigest, ResolvedImage};
use std::sync::Arc;

use capasg_api::{
    ASGMachinePool,
    capi::{MachinePool, PauseState},
};
use capasg_cloud::CloudError;
use capasg_test_objects::maximal_pool;
use serde_json::{Value, json};

use super::*;
use crate::ObjectKey;

/// Values of which one is another than the one that a text field has.
const OTHERS: [&str; 24] = [
    "gp3",
    "io1",
    "optional",
    "required",
    "enabled",
    "disabled",
    "AccountDefault",
    "Encrypted",
    "Delete",
    "Retain",
    "Ignore",
    "Drain",
    "OnDelete",
    "prioritized",
    "Apply",
    "ELB",
    "EC2",
    "Launch",
    "Terminate",
    "lowest-price",
    "RollOut",
    "Paused",
    "Oldest",
    "Replace",
];

fn stamp(spec: &Value, version: &str) -> Option<Stamp> {
    launch(spec, version, References::default(), None)
}

/// The stamp of the desired launch, unless that is unknown; `used` are the security groups that the group launches with.
fn launch(
    spec: &Value,
    version: &str,
    references: References,
    used: Option<&BTreeSet<String>>,
) -> Option<Stamp> {
    let mut pool = ASGMachinePool::new("workers", serde_json::from_value(spec.clone()).ok()?);
    pool.annotations_mut().insert(annotations::OWNER_ID.to_owned(), "me".to_owned());
    let mut owner = MachinePool::new("workers", capasg_api::capi::MachinePoolSpec::default());
    owner.spec.template.spec.version = Some(version.to_owned());
    let image = &pool.spec.machine.image;
    let named = image.id.clone().or_else(|| image.ssm_parameter_for(Some(version)).ok().flatten());
    let references = References {
        image: Some(ResolvedImage {
            id: named.unwrap_or_default(),
            root_device: "/dev/xvda".to_owned(),
            architecture: None,
            is_windows: false,
            block_devices: Vec::new(),
        }),
        ..references
    };
    let objects = PoolObjects {
        access: crate::access::Access::of_process(),
        key: ObjectKey::new("default", "workers"),
        pool: Arc::new(pool),
        machine_pool: Some(Arc::new(owner)),
        cluster_name: Some("prod".to_owned()),
        cluster: None,
        pause: PauseState::default(),
    };
    let bootstrap = Bootstrap { digest: BootstrapDigest::default(), data: None };
    match desired(&objects, &references, Some(&bootstrap), used)?.launch {
        DesiredLaunch::Known { stamp, .. } => Some(stamp),
        DesiredLaunch::Unknown => None,
    }
}

/// The pointers of all values that hold no others.
fn leaves(value: &Value, at: &str, all: &mut Vec<String>) {
    let key = |key: &str| format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| leaves(value, &key(name), all)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, value)| leaves(value, &key(&n.to_string()), all));
        }
        _ => all.push(at.to_owned()),
    }
}

/// The spec with another value at a pointer: the first that the types take.
fn edited(spec: &Value, at: &str, version: &str) -> Option<Value> {
    let with = |value: Value| {
        let mut spec = spec.clone();
        *spec.pointer_mut(at)? = value;
        Some(spec)
    };
    let taken = |spec: &Value| stamp(spec, version).is_some();
    match spec.pointer(at)? {
        Value::Number(number) => with(json!(number.as_i64()? - 1)).filter(taken),
        Value::Bool(value) => with(json!(!value)),
        Value::String(text) => {
            let free = format!("{text}x");
            let other = OTHERS.iter().copied().filter(|other| other != text);
            std::iter::once(free.as_str()).chain(other).find_map(|other| with(json!(other)).filter(taken))
        }
        _ => None,
    }
}

/// Each field of `spec.machine` alone makes another rollout hash, and no other field does; of the others, tags
/// and the first instance type alone are in a version at all.
#[test]
fn w5_w10_p42_only_fields_of_spec_machine_make_instances_outdated() {
    const VERSION: &str = "v1.36.3";
    const IN_PLACE: [&str; 2] = ["/machine/ephemeralStorageDeviceName", "/machine/image/updatePolicy"];
    let mut spec = maximal_pool()["spec"].clone();
    spec["machine"]["image"]["updatePolicy"] = json!("WithVersion");
    // Of equal ones the first says all there is to say.
    for (list, length) in [
        ("/providerIDList", 0),
        ("/subnets", 1),
        ("/machine/securityGroups", 1),
        ("/instanceTypes", 3),
        ("/machine/dataVolumes", 2),
        ("/disruption/windows", 1),
    ] {
        if let Some(Value::Array(items)) = spec.pointer_mut(list) {
            items.truncate(length);
        }
    }
    let before = stamp(&spec, VERSION).unwrap();
    let mut all = Vec::new();
    leaves(&spec, "", &mut all);
    let (mut rolled, mut stayed, mut unedited) = (0, 0, Vec::new());
    for at in all.iter().filter(|at| *at != "/providerID") {
        let Some(edited) = edited(&spec, at, VERSION) else {
            unedited.push(at.as_str());
            continue;
        };
        let after = stamp(&edited, VERSION).unwrap();
        let rolls = at.starts_with("/machine/") && !IN_PLACE.contains(&at.as_str());
        assert_eq!(after.rollout != before.rollout, rolls, "{at}");
        let is_held = rolls || at.starts_with("/tags/") || at == "/instanceTypes/0/type";
        let by_id_alone = at.starts_with("/machine/securityGroups/");
        assert_eq!(after.content != before.content, is_held && !by_id_alone, "{at}");
        *if rolls { &mut rolled } else { &mut stayed } += 1;
    }
    assert!(rolled > 40 && stayed > 60, "{rolled} and {stayed} fields");
    assert!(unedited.is_empty(), "{unedited:?}");
    assert_ne!(stamp(&spec, "v1.36.4").unwrap().rollout, before.rollout);
}

/// The group keeps its subnets while they cannot be read: security groups of another VPC than theirs would be rejected.
#[test]
fn other_security_groups_wait_until_subnets_can_be_read() {
    let spec = maximal_pool()["spec"].clone();
    let failed = |groups: &[&str]| References {
        security_groups: groups.iter().map(|&id| id.to_owned()).collect(),
        failed: vec![CloudError::unanswered("DescribeSubnets", "Timeout", "no answer")],
        ..References::default()
    };
    let used = BTreeSet::from(["sg-1".to_owned()]);
    let is_known = |references, used| launch(&spec, "v1.36.3", references, used).is_some();
    assert!(is_known(failed(&["sg-1"]), Some(&used)), "the same security groups");
    assert!(!is_known(failed(&["sg-2"]), Some(&used)), "others");
    assert!(!is_known(failed(&["sg-1"]), None), "a group that may not exist");
    let read = References { subnets: BTreeSet::from(["subnet-1".to_owned()]), ..failed(&["sg-2"]) };
    assert!(is_known(read, Some(&used)), "the subnets were read");
}
