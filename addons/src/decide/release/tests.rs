//! Decisions by cases. `additions.rs` has those that Cluster API's add-on provider for Helm does
//! not make, and `random.rs` the properties.

mod additions;
mod before_cluster;
mod random;
mod records;

use std::collections::BTreeMap;

use capasg_api::conditions::Status;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Map, Value, json};

use super::*;
use crate::{
    HelmReleaseProxySpec,
    helm::{ChartMetadata, Release, ReleaseState},
    names,
};

/// What a decision is made from, with the parts that `Desired` borrows.
#[derive(Debug, Clone)]
struct Case {
    spec: HelmReleaseProxySpec,
    values: Map<String, Value>,
    newest: Option<String>,
    archive: Option<String>,
    id: Option<String>,
    is_installed: bool,
    created_at: Option<DateTime<Utc>>,
    app_version: Option<String>,
    is_orphaned: bool,
    is_paused: bool,
    cluster_deletion: ClusterDeletion,
    deleted_at: Option<DateTime<Utc>>,
    claimed_by: Option<String>,
    uninstalled_first: Vec<String>,
    remaining: Vec<String>,
    drift: Option<Drift>,
    fresh: Fresh,
    cluster: Cluster,
    memory: Memory,
    now: DateTime<Utc>,
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_000_000 + seconds, 0).unwrap()
}

fn map(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

impl Case {
    /// An object whose release does not exist.
    fn new() -> Self {
        let spec = json!({
            "clusterRef": {"name": "prod"}, "chartName": "cilium", "repoURL": "https://charts.example",
            "releaseName": "cni", "namespace": "kube-system", "version": "1.17.0",
        });
        Self {
            spec: serde_json::from_value(spec).unwrap(),
            values: map(json!({"replicas": 2})),
            newest: None,
            archive: None,
            id: None,
            is_installed: false,
            created_at: None,
            app_version: None,
            is_orphaned: false,
            is_paused: false,
            cluster_deletion: ClusterDeletion::NotRequested,
            deleted_at: None,
            claimed_by: None,
            uninstalled_first: Vec::new(),
            remaining: Vec::new(),
            drift: None,
            fresh: Fresh { id: "fresh".into(), name: "cilium-0a1b2c3d".into() },
            cluster: Cluster::Reachable(None),
            memory: Memory::default(),
            now: at(0),
        }
    }

    /// An object whose release is as requested.
    fn installed() -> Self {
        let mut case = Self { id: Some("own".into()), is_installed: true, ..Self::new() };
        case.cluster = Cluster::Reachable(Some(case.found()));
        case
    }

    fn desired(&self) -> Desired<'_> {
        Desired {
            spec: &self.spec,
            request: "1",
            values: &self.values,
            newest: self.newest.as_deref(),
            archive: self.archive.as_deref(),
            id: self.id.as_deref(),
            is_installed: self.is_installed,
            created_at: self.created_at,
            app_version: self.app_version.as_deref(),
            is_orphaned: self.is_orphaned,
            is_paused: self.is_paused,
            cluster_deletion: self.cluster_deletion,
            deleted_at: self.deleted_at,
            claimed_by: self.claimed_by.as_deref(),
            uninstalled_first: &self.uninstalled_first,
            remaining: &self.remaining,
            drift: self.drift.as_ref(),
            operation_limit: TimeDelta::minutes(30),
            fresh: &self.fresh,
        }
    }

    /// The release as an installation of this spec leaves it.
    fn found(&self) -> Found {
        let chart = ChartMetadata {
            name: self.spec.chart_name.clone(),
            version: "1.17.0".into(),
            ..ChartMetadata::default()
        };
        let release =
            Release { revision: 1, state: ReleaseState::Deployed, chart, values: self.values.clone() };
        Found { release, labels: labels(&self.desired(), 1), created_at: at(0) }
    }

    fn with(mut self, change: impl FnOnce(&mut Found)) -> Self {
        let Cluster::Reachable(Some(found)) = &mut self.cluster else { panic!("a release exists") };
        change(found);
        self
    }

    fn decide(&self) -> Decision {
        decide(&self.desired(), &self.cluster, &self.memory, self.now)
    }

    fn step(&self) -> Step {
        self.decide().step
    }

    /// Reason and message of `HelmReleaseReady`.
    fn ready(&self) -> (Status, &'static str, String) {
        let ready = self.decide().conditions.remove(1);
        (ready.status, ready.reason, ready.message.into_owned())
    }
}

fn no_labels(found: &mut Found) {
    found.labels = BTreeMap::new();
}

#[test]
fn the_intent_is_recorded_before_the_installation() {
    let mut case = Case::new();
    assert_eq!(case.step(), Step::Record { id: "fresh".into(), name: None });
    case.spec.release_name.clear();
    assert_eq!(case.step(), Step::Record { id: "fresh".into(), name: Some("cilium-0a1b2c3d".into()) });
    case.id = Some("own".into());
    assert_eq!(case.step(), Step::Record { id: "own".into(), name: Some("cilium-0a1b2c3d".into()) });
    case.spec.release_name = "cni".into();
    assert_eq!(case.step(), Step::Install { replaces: false });
    assert_eq!(case.ready().1, "PreparingToHelmInstall");
}

#[test]
fn a_release_as_requested_is_left_alone() {
    let case = Case::installed();
    assert_eq!(case.step(), Step::Nothing);
    assert_eq!(case.ready(), (Status::True, "Ready", String::new()));
    let case = Case { is_installed: false, ..case };
    assert_eq!(case.step(), Step::RecordInstalled, "the record of a success that was lost is repeated");
}

#[test]
fn what_differs_is_upgraded() {
    let case = Case::installed();
    let version = Change::Version { from: "1.17.0".into(), to: "1.18.0".into() };
    let mut changed = case.clone();
    changed.spec.version = "1.18.0".into();
    assert_eq!(changed.step(), Step::Upgrade(version.clone()));
    let message = "the release is being upgraded from version 1.17.0 to 1.18.0";
    assert_eq!(changed.ready(), (Status::False, "HelmReleasePending", message.to_owned()));
    changed.spec.version = "^1.17".into();
    changed.newest = Some("1.18.0".into());
    assert_eq!(changed.step(), Step::Upgrade(version));
    let values = Case { values: map(json!({"replicas": 3})), ..case.clone() };
    assert_eq!(values.step(), Step::Upgrade(Change::Values));
    let mut options = case.clone();
    options.spec.options = Some(serde_json::from_value(json!({"disableHooks": true})).unwrap());
    assert_eq!(options.step(), Step::Upgrade(Change::Options));
    options.spec.options = Some(serde_json::from_value(json!({"timeout": "1m"})).unwrap());
    assert_eq!(options.step(), Step::Nothing, "it applies to the next operation");
    let failed = case.with(|found| found.release.state = ReleaseState::Failed);
    assert_eq!(failed.step(), Step::Upgrade(Change::Failed));
}

#[test]
fn a_release_of_another_chart_is_uninstalled_first() {
    let mut case = Case::installed();
    case.spec.chart_name = "calico".into();
    assert_eq!(case.step(), Step::Uninstall(Removal::OtherChart));
    case.cluster = Cluster::Reachable(None);
    assert_eq!(case.step(), Step::Install { replaces: false });
}

#[test]
fn install_once_changes_nothing_after_the_first_success() {
    let mut case = Case::installed();
    case.spec.reconcile_strategy = crate::kinds::ReconcileStrategy::InstallOnce;
    case.spec.version = "2.0.0".into();
    assert_eq!(case.step(), Step::Nothing);
    case.is_installed = false;
    assert_eq!(case.step(), Step::RecordInstalled, "it was installed, whatever the spec is now");
    let failed = case.clone().with(|found| found.release.state = ReleaseState::Failed);
    assert_eq!(failed.step(), Step::Upgrade(Change::Failed), "it was not installed yet");
    case.is_installed = true;
    case.cluster = Cluster::Reachable(None);
    assert_eq!(case.step(), Step::Nothing, "it is not installed again");
    case.deleted_at = Some(at(0));
    assert_eq!(case.step(), Step::Release, "it stays in the cluster");
}

#[test]
fn a_release_of_another_actor_is_left_unchanged() {
    let foreign = Case { is_installed: false, id: None, ..Case::installed().with(no_labels) };
    assert_eq!(foreign.step(), Step::Reject(Conflict::NotOwned));
    let (status, reason, message) = foreign.ready();
    assert_eq!((status, reason), (Status::False, "HelmInstallOrUpgradeFailed"));
    assert!(message.starts_with("another actor installed a release of this name; uninstall it"), "{message}");
    let replaced = Case::installed().with(no_labels);
    assert_eq!(replaced.step(), Step::Reject(Conflict::NotOwned), "it replaced ours");
    let other = Case { id: Some("other".into()), ..Case::installed() };
    assert_eq!(other.step(), Step::Reject(Conflict::OtherId));
    for case in [foreign, replaced, other] {
        let deleted = Case { deleted_at: Some(at(0)), ..case };
        assert_eq!(deleted.step(), Step::Release, "it is not uninstalled");
    }
}

#[test]
fn a_release_of_the_other_add_on_provider_is_continued_without_an_operation() {
    let mut case = Case { id: None, ..Case::installed().with(no_labels) };
    let id = "taken-over-fresh".to_owned();
    assert_eq!(case.step(), Step::Record { id: id.clone(), name: None });
    assert_eq!(Case { deleted_at: Some(at(0)), ..case.clone() }.step(), Step::Uninstall(Removal::Deleted));
    case.id = Some(id);
    assert_eq!(case.step(), Step::Nothing);
    case.values = map(json!({}));
    assert_eq!(case.step(), Step::Upgrade(Change::Values));
}

#[test]
fn a_release_is_taken_over_on_request() {
    for label in [None, Some("other")] {
        let mut case = Case { id: None, is_installed: false, ..Case::installed().with(no_labels) };
        case.spec.options = Some(serde_json::from_value(json!({"takeOwnership": true})).unwrap());
        if let (Cluster::Reachable(Some(found)), Some(label)) = (&mut case.cluster, label) {
            found.labels.insert(names::RELEASE_ID.into(), label.into());
        }
        let id = "taken-over-fresh".to_owned();
        assert_eq!(case.step(), Step::Record { id: id.clone(), name: None });
        case.id = Some(id);
        let next = if label.is_some() { Step::Upgrade(Change::TakenOver) } else { Step::RecordInstalled };
        assert_eq!(case.step(), next);
    }
}

#[test]
fn two_objects_do_not_change_one_release() {
    let first = Case { claimed_by: Some("cni-other".into()), ..Case::installed() };
    assert_eq!(
        first.step(),
        Step::Nothing,
        "the other one claimed it at the same time, and has not installed it"
    );
    let deleted = Case { deleted_at: Some(at(0)), ..first.clone() };
    assert_eq!(deleted.step(), Step::Uninstall(Removal::Deleted));
    let case = first.with(|found| drop(found.labels.insert(names::RELEASE_ID.into(), "other".into())));
    assert_eq!(case.step(), Step::Reject(Conflict::Claimed("cni-other".into())));
    let absent = Case { cluster: Cluster::Reachable(None), ..case.clone() };
    assert_eq!(absent.step(), Step::Reject(Conflict::Claimed("cni-other".into())));
    assert_eq!(Case { deleted_at: Some(at(0)), ..case }.step(), Step::Release);
}

#[test]
fn an_interrupted_operation_of_ours_is_repeated_at_once() {
    for state in [ReleaseState::PendingInstall, ReleaseState::PendingUpgrade, ReleaseState::PendingRollback] {
        let case = Case::installed().with(|found| found.release.state = state);
        assert_eq!(case.step(), Step::MarkFailed { revision: 1 });
    }
    let case = Case::installed().with(|found| found.release.state = ReleaseState::Uninstalling);
    assert_eq!(case.step(), Step::Uninstall(Removal::Interrupted));
}

#[test]
fn an_operation_of_another_actor_has_time_to_end() {
    // A manual upgrade inherits the labels of revision 1.
    let mut case = Case::installed().with(|found| {
        (found.release.state, found.release.revision) = (ReleaseState::PendingUpgrade, 2);
    });
    assert_eq!(case.step(), Step::Wait(Wait::Operation(at(1800))));
    assert_eq!(case.ready().1, "HelmReleasePending");
    case.now = at(1800);
    assert_eq!(case.step(), Step::MarkFailed { revision: 2 });
}

#[test]
fn an_uninstalled_release_with_a_history_is_installed_again() {
    let case = Case::installed().with(|found| found.release.state = ReleaseState::Uninstalled);
    assert_eq!(case.step(), Step::Install { replaces: true });
    assert_eq!(Case { deleted_at: Some(at(0)), ..case }.step(), Step::Release);
}

#[test]
fn nothing_is_done_in_a_pause() {
    for deleted_at in [None, Some(at(0))] {
        for cluster in [Cluster::Reachable(None), Cluster::Missing, Case::installed().cluster] {
            let case = Case { is_paused: true, deleted_at, cluster, ..Case::installed() };
            assert_eq!(case.decide(), Decision { step: Step::Nothing, conditions: Vec::new() });
        }
    }
}

#[test]
fn a_cluster_that_does_not_respond_is_waited_for() {
    let unreachable = Cluster::Unreachable { since: at(-60) };
    let message = "the kubeconfig must not contain exec".to_owned();
    let rejected = Cluster::NoAccess { reason: "GetKubeconfigFailed", message };
    for (cluster, reason) in [
        (Cluster::Missing, "GetClusterFailed"),
        (Cluster::NotInitialized, "NotAvailable"),
        (rejected, "GetKubeconfigFailed"),
        (unreachable, "ClusterUnreachable"),
    ] {
        let case = Case { cluster, ..Case::installed() };
        let decision = case.decide();
        assert_eq!(decision.step, Step::Wait(Wait::Cluster));
        assert_eq!(decision.conditions[0].reason, reason);
        assert_eq!(case.ready().1, "PreparingToHelmInstall");
    }
    let deleting =
        Case { cluster_deletion: ClusterDeletion::Requested, values: Map::new(), ..Case::installed() };
    assert_eq!(deleting.step(), Step::Wait(Wait::Cluster));
}

#[test]
fn a_deletion_uninstalls_and_does_not_wait_for_a_cluster_for_ever() {
    let case = Case { deleted_at: Some(at(0)), ..Case::installed() };
    assert_eq!(case.step(), Step::Uninstall(Removal::Deleted));
    assert_eq!(Case { cluster: Cluster::Reachable(None), ..case.clone() }.step(), Step::Release);
    assert_eq!(Case { cluster: Cluster::Missing, ..case.clone() }.step(), Step::Release);
    let never = Case { id: None, is_installed: false, cluster: Cluster::NotInitialized, ..case.clone() };
    assert_eq!(never.step(), Step::Release, "nothing was ever installed");
    let mut waiting = Case { cluster: Cluster::Unreachable { since: at(60) }, now: at(660), ..case };
    assert_eq!(waiting.step(), Step::Wait(Wait::Unreachable(at(3660))), "for 10 minutes");
    assert_eq!(waiting.ready().1, "HelmReleaseDeletionFailed");
    waiting.now = at(3660);
    assert_eq!(waiting.step(), Step::Release);
    assert!(waiting.ready().2.starts_with("the release is left in the cluster"));
    let with_cluster = Case { cluster_deletion: ClusterDeletion::Requested, now: at(180), ..waiting };
    assert_eq!(with_cluster.step(), Step::Release);
}

#[test]
fn a_failure_is_reported_and_tried_again_later() {
    let mut case = Case { id: Some("own".into()), ..Case::new() };
    case.memory.failed("1", "ChartNotFound", "helm pull: the repository has no such chart".into(), at(0));
    assert_eq!(case.step(), Step::Wait(Wait::Backoff(at(15))));
    let message = "ChartNotFound: helm pull: the repository has no such chart";
    assert_eq!(case.ready(), (Status::False, "HelmInstallOrUpgradeFailed", message.to_owned()));
    case.now = at(15);
    assert_eq!(case.step(), Step::Install { replaces: false });
}

#[test]
fn a_release_that_others_depend_on_is_uninstalled_after_them_within_a_limit() {
    let first = vec!["csi-prod".to_owned()];
    let case = Case { deleted_at: Some(at(0)), uninstalled_first: first, ..Case::installed() };
    assert_eq!(case.step(), Step::Wait(Wait::Dependents(at(3600))));
    let (status, reason, message) = case.ready();
    assert_eq!((status, reason), (Status::False, "HelmReleasePending"));
    let expected = "releases that depend on this one are uninstalled first, until 1970-01-12T14:46:40Z at most: csi-prod";
    assert_eq!(message, expected);
    let uninstall = Step::Uninstall(Removal::Deleted);
    assert_eq!(Case { now: at(3600), ..case.clone() }.step(), uninstall);
    assert_eq!(Case { uninstalled_first: Vec::new(), ..case.clone() }.step(), uninstall);
    let in_deletion = Case { cluster_deletion: ClusterDeletion::Requested, ..case };
    assert_eq!(in_deletion.step(), Step::Wait(Wait::Dependents(at(3600))), "they are uninstalled before it");
}
