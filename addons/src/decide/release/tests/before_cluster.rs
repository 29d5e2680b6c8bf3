//! Releases that are uninstalled before their Cluster.

use super::*;

#[test]
fn before_the_cluster_a_release_is_uninstalled_and_what_it_has_in_the_cloud_is_waited_for() {
    let before = |case: Case| Case {
        cluster_deletion: ClusterDeletion::AfterRelease,
        deleted_at: Some(at(0)),
        ..case
    };
    let remaining = || vec!["Service web/nginx".to_owned()];
    let case = Case { remaining: remaining(), ..before(Case::installed()) };
    assert_eq!(case.step(), Step::Uninstall(Removal::Deleted));
    let mut once = case.clone();
    once.spec.reconcile_strategy = crate::kinds::ReconcileStrategy::InstallOnce;
    assert_eq!(once.step(), Step::Uninstall(Removal::Deleted), "the annotation asks for it");
    assert_eq!(Case { cluster_deletion: ClusterDeletion::Requested, ..once }.step(), Step::Release);

    let with_history = case.clone().with(|found| found.release.state = ReleaseState::Uninstalled);
    for uninstalled in [Case { cluster: Cluster::Reachable(None), ..case.clone() }, with_history] {
        assert_eq!(uninstalled.step(), Step::Wait(Wait::Remaining(at(3600))));
        let message = "objects of the Cluster that have resources in the cloud remain: Service web/nginx";
        assert_eq!(
            uninstalled.ready(),
            (Status::False, "CloudResourcesRemain", message.to_owned()),
            "without times"
        );
        let late = Case { now: at(3600), ..uninstalled.clone() };
        assert_eq!((late.step(), late.ready().2.as_str()), (Step::Release, message));
        assert_eq!(Case { remaining: Vec::new(), ..uninstalled }.step(), Step::Release);
    }
    let never = Case { id: None, is_installed: false, cluster: Cluster::Reachable(None), ..case.clone() };
    assert_eq!(never.step(), Step::Release, "nothing was ever installed");
    let unreachable = Case { cluster: Cluster::Unreachable { since: at(60) }, now: at(659), ..case };
    assert_eq!(unreachable.step(), Step::Wait(Wait::Unreachable(at(660))));
    let late = Case { now: at(660), ..unreachable };
    assert_eq!(late.step(), Step::Release);
    assert!(late.ready().2.starts_with("the release is left in the cluster"));
}
