//! Launch-template versions by example.

use std::collections::BTreeSet;

use capasg_cloud::Write;

use crate::machine_pool::decide::rollout::outdated;
use crate::machine_pool::decide::testing::{Stage, cloud, stamp, version};
use crate::machine_pool::model::{DesiredLaunch, Known, ObservedTemplate};

#[test]
fn h2_a_rotation_creates_a_version_and_outdates_nothing() {
    let mut stage = Stage::new(3);
    let mut rotated = stamp("1");
    rotated.content = stamp("2").content;
    if let DesiredLaunch::Known { stamp, .. } = &mut stage.desired.launch {
        *stamp = rotated.clone();
    }
    let plan = stage.plan();
    assert!(matches!(cloud(&plan)[..], [Write::CreateLaunchTemplateVersion { .. }]), "{plan:?}");
    if let Known::Present(ObservedTemplate { versions, .. }) = &mut stage.observed.template {
        versions.insert(2, version(2, &rotated));
    }
    let plan = stage.plan();
    assert!(
        matches!(cloud(&plan)[..], [Write::UpdateGroup { change, .. }] if change.launch.is_some()),
        "pinned by number"
    );
    assert_eq!(outdated::outdated(&stage.desired, &stage.observed, stage.clock).count(), 0);
}

#[test]
fn p5_old_versions_are_pruned_in_one_call_and_never_one_in_use() {
    let mut stage = Stage::new(3);
    if let Known::Present(ObservedTemplate { versions, .. }) = &mut stage.observed.template {
        versions.extend((2..=12).map(|n| (n, version(n, &stamp(&n.to_string())))));
    }
    stage.instance("i-2").listed.as_mut().unwrap().template = Some(("lt-1".into(), 5));
    let plan = stage.plan();
    let Some(Write::DeleteLaunchTemplateVersions { versions, .. }) = cloud(&plan).pop() else {
        panic!("{plan:?}")
    };
    assert_eq!(*versions, BTreeSet::from([2, 3, 4, 6, 7, 8, 9]));
}
