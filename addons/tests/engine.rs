//! Steps of a release, as they are decided, with the real Helm: until nothing is left to do, after interruptions, and next to
//! releases of other actors.

mod support;

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, Bytes},
};
use capasg_addons::{
    HelmReleaseProxySpec,
    decide::release::{
        Change, ClusterDeletion, Conflict, Desired, Fresh, Memory, Removal, Step, decide, labels,
    },
    engine::{Request, Workload},
    helm::{
        ChartSource, Helm, Namespace, Operation, ReleaseKey, ReleaseName, ReleaseState, Source, Target,
        Version,
    },
    kinds::HelmOptions,
    kubeconfig::Kubeconfig,
};
use capasg_environment::serve_https;
use chrono::{TimeDelta, Utc};
use serde_json::{Map, Value, json};
use support::{Outcome, api_server::Cluster, launcher, programs, repository::Repository};
use tempfile::TempDir;

const SOON: Duration = Duration::from_mins(2);

/// A cluster, and one object that requests a release in it.
struct Lab {
    helm: Helm,
    cluster: Cluster,
    kubeconfig: Kubeconfig,
    workload: Workload,
    repository: Repository,
    _root: TempDir,
    key: ReleaseKey,
    spec: HelmReleaseProxySpec,
    values: Map<String, Value>,
    id: Option<String>,
    is_installed: bool,
    app_version: Option<String>,
    is_deleting: bool,
    fresh: Fresh,
}

impl Lab {
    async fn new() -> Outcome<Self> {
        let _ = tokio_rustls::rustls::crypto::aws_lc_rs::default_provider().install_default();
        let program = programs().await?.join("helm");
        let root = tempfile::tempdir()?;
        let repository = Repository::serve(&program).await?;
        let cluster = Cluster::default();
        let kubeconfig = Kubeconfig::parse(&serve_https(cluster.routes()).await?.kubeconfig())?;
        let spec = json!({
            "clusterRef": {"name": "prod"}, "chartName": "demo", "repoURL": repository.url, "releaseName": "cni",
            "namespace": "kube-system", "version": "1.0.0",
            "options": {
                // The small API server serves no schema.
                "disableOpenAPIValidation": true, "install": {"createNamespace": false}, "timeout": "30s",
            },
        });
        Ok(Self {
            helm: Helm::new(program, root.path().to_owned(), launcher()?)?,
            cluster,
            workload: Workload::connect(kubeconfig.clone()).await?,
            kubeconfig,
            repository,
            _root: root,
            key: ReleaseKey { namespace: Namespace::parse("kube-system")?, name: ReleaseName::parse("cni")? },
            spec: serde_json::from_value(spec)?,
            values: values("one"),
            id: None,
            is_installed: false,
            app_version: None,
            is_deleting: false,
            fresh: Fresh { id: "fresh".to_owned(), name: "demo-1".to_owned() },
        })
    }

    fn desired(&self) -> Desired<'_> {
        Desired {
            spec: &self.spec,
            request: "1",
            values: &self.values,
            newest: None,
            archive: None,
            id: self.id.as_deref(),
            is_installed: self.is_installed,
            created_at: None,
            app_version: self.app_version.as_deref(),
            is_orphaned: false,
            is_paused: false,
            cluster_deletion: ClusterDeletion::NotRequested,
            deleted_at: self.is_deleting.then(Utc::now),
            claimed_by: None,
            uninstalled_first: &[],
            remaining: &[],
            drift: None,
            operation_limit: TimeDelta::minutes(30),
            fresh: &self.fresh,
        }
    }

    /// One step.
    async fn step(&mut self) -> Outcome<Step> {
        let found = self.workload.find(&self.key).await?;
        let revision = found.as_ref().map_or(0, |found| found.release.revision) + 1;
        let app_version = found.as_ref().map(|found| found.release.chart.shown_app_version().to_owned());
        let cluster = capasg_addons::decide::release::Cluster::Reachable(found);
        let step = decide(&self.desired(), &cluster, &Memory::default(), Utc::now()).step;
        let labels = labels(&self.desired(), revision);
        let source =
            Source { version: Some(Version::parse(&self.spec.version)?), ..self.repository.source()? };
        let source = ChartSource::Repository(source);
        let options = self.spec.options.clone().unwrap_or_default();
        let request =
            Request { source: Some(&source), options: &options, values: &self.values, labels: &labels };
        self.workload.carry_out(&self.helm, &self.key, &step, &request).await?;
        match &step {
            Step::Record { id, .. } => self.id = Some(id.clone()),
            Step::RecordInstalled => (self.is_installed, self.app_version) = (true, app_version),
            _ => {}
        }
        Ok(step)
    }

    /// All steps until nothing is left to do, without the last one.
    async fn settle(&mut self) -> Outcome<Vec<Step>> {
        let mut steps = Vec::new();
        for _ in 0..10 {
            match self.step().await? {
                Step::Nothing | Step::Release => return Ok(steps),
                Step::Reject(conflict) => return Err(conflict.to_string().into()),
                step => steps.push(step),
            }
        }
        Err(format!("not settled: {steps:?}").into())
    }

    /// Kills Helm in the middle of the next step, when this revision has this state.
    async fn interrupt(&mut self, revision: i64, state: &str) -> Outcome {
        self.cluster.stall(Some("/configmaps"));
        let cluster = self.cluster.clone();
        let path = format!("/api/v1/namespaces/kube-system/secrets/sh.helm.release.v1.cni.v{revision}");
        let has_state = async {
            let deadline = Instant::now() + SOON;
            while cluster.get(&path).is_none_or(|secret| secret["metadata"]["labels"]["status"] != state) {
                assert!(Instant::now() < deadline, "the operation begins");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        // Helm is killed with the future of the step.
        tokio::select! {
            step = self.step() => return Err(format!("not stalled: {step:?}").into()),
            () = has_state => {}
        }
        self.cluster.stall(None);
        Ok(())
    }

    /// The data of the `ConfigMap` of the chart.
    fn applied(&self) -> Value {
        let map = self.cluster.get("/api/v1/namespaces/kube-system/configmaps/cni");
        map.map(|map| map["data"].clone()).unwrap_or_default()
    }

    /// State and number of all revisions, as Helm reports them.
    async fn history(&self) -> Outcome<Vec<(i64, ReleaseState)>> {
        let options = HelmOptions::default();
        let target = Target { kubeconfig: &self.kubeconfig, key: &self.key, options: &options };
        let history = Operation::begin(&self.helm)?.history(&target, 10).await?;
        Ok(history.iter().map(|one| (one.revision, one.status)).collect())
    }
}

fn values(password: &str) -> Map<String, Value> {
    [("password".to_owned(), json!(password))].into_iter().collect()
}

// Rules: X10
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_is_installed_upgraded_and_uninstalled() -> Outcome {
    let mut lab = Lab::new().await?;
    let steps = lab.settle().await?;
    let record = Step::Record { id: "fresh".to_owned(), name: None };
    assert_eq!(steps, [record, Step::Install { replaces: false }, Step::RecordInstalled]);
    assert_eq!(lab.applied(), json!({"version": "1.0.0", "password": "one"}));
    lab.values = values("two");
    assert_eq!(lab.settle().await?, [Step::Upgrade(Change::Values)]);
    lab.spec.version = "1.1.0".to_owned();
    let version = Change::Version { from: "1.0.0".to_owned(), to: "1.1.0".to_owned() };
    assert_eq!(lab.settle().await?, [Step::Upgrade(version)]);
    lab.values = Map::new();
    assert_eq!(lab.settle().await?, [Step::Upgrade(Change::Values)], "values that were removed are removed");
    assert_eq!(lab.applied(), json!({"version": "1.1.0", "password": ""}));
    let superseded = |revision| (revision, ReleaseState::Superseded);
    let deployed = (4, ReleaseState::Deployed);
    assert_eq!(lab.history().await?, [superseded(1), superseded(2), superseded(3), deployed]);
    lab.is_deleting = true;
    assert_eq!(lab.settle().await?, [Step::Uninstall(Removal::Deleted)]);
    assert_eq!(lab.cluster.paths("/api/v1/namespaces/kube-system/"), Vec::<String>::new());
    assert_eq!(lab.history().await?, []);
    Ok(())
}

// Rules: X7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_operation_is_repeated_and_loses_no_revision() -> Outcome {
    let mut lab = Lab::new().await?;
    lab.step().await?;
    for (revision, pending) in [(1, "pending-install"), (3, "pending-upgrade")] {
        lab.values = values(pending);
        lab.interrupt(revision, pending).await?;
        let steps = lab.settle().await?;
        assert_eq!(steps[..2], [Step::MarkFailed { revision }, Step::Upgrade(Change::Failed)]);
        assert_eq!(lab.applied()["password"], pending);
    }
    let states: Vec<_> = lab.history().await?;
    // Helm itself marks the first one as superseded: it upgrades from it, since none was deployed.
    let expected =
        [ReleaseState::Superseded, ReleaseState::Superseded, ReleaseState::Failed, ReleaseState::Deployed];
    assert_eq!(states, (1..).zip(expected).collect::<Vec<_>>());
    lab.is_deleting = true;
    lab.interrupt(4, "uninstalling").await?;
    assert_eq!(lab.settle().await?, [Step::Uninstall(Removal::Deleted)]);
    assert_eq!(lab.cluster.paths("/api/v1/namespaces/kube-system/"), Vec::<String>::new());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_of_another_actor_is_rejected_unless_it_was_handed_over() -> Outcome {
    let mut lab = Lab::new().await?;
    lab.settle().await?;
    // As a manual installation of the same chart leaves it.
    let secret = "/api/v1/namespaces/kube-system/secrets/sh.helm.release.v1.cni.v1";
    lab.cluster.change(secret, |secret| {
        if let Some(labels) = secret["metadata"]["labels"].as_object_mut() {
            labels.retain(|key, _| !key.contains('/'));
        }
    });
    assert_eq!(lab.step().await?, Step::Reject(Conflict::NotOwned));
    // As the other add-on provider leaves it: its object shows the release as installed, and has no ID.
    (lab.id, lab.is_installed) = (None, true);
    let steps = lab.settle().await?;
    assert_eq!(steps, [Step::Record { id: "taken-over-fresh".to_owned(), name: None }]);
    assert_eq!(lab.history().await?, [(1, ReleaseState::Deployed)], "nothing was installed again");
    Ok(())
}

/// The user of a workload cluster decides what its API server responds.
#[tokio::test]
async fn a_response_without_end_is_not_read_to_its_end() -> Outcome<()> {
    let _ = tokio_rustls::rustls::crypto::aws_lc_rs::default_provider().install_default();
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sent);
    let answer = move || {
        let counter = Arc::clone(&counter);
        let chunks = std::iter::repeat_with(move || {
            counter.fetch_add(1, Ordering::SeqCst);
            Ok::<_, Infallible>(Bytes::from(vec![b' '; 1 << 20]))
        });
        async move { Body::from_stream(futures::stream::iter(chunks.take(500))) }
    };
    let kubeconfig = serve_https(Router::new().fallback(answer)).await?.kubeconfig();
    let workload = Workload::connect(Kubeconfig::parse(&kubeconfig)?).await?;
    let key = ReleaseKey { namespace: Namespace::parse("kube-system")?, name: ReleaseName::parse("cni")? };
    let error = workload.find(&key).await.err().map(|error| error.to_string());
    assert!(error.as_ref().is_some_and(|error| error.starts_with("cannot read the release")), "{error:?}");
    assert!(sent.load(Ordering::SeqCst) < 100, "{sent:?} MiB");
    Ok(())
}
