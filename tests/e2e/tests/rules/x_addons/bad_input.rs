//! X: what users and clusters get wrong. Each is in words in a condition, it is tried again at growing intervals and not in
//! between, and nothing is lost once it is corrected.

mod cases;

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{
    Addons, CLUSTER, Charts, DEMO, Rig, Setup, condition_of, eventually, rule, shared_workload_api,
};
use capasg_environment::{ChartRepository, Login, Look, wait_until};
use capasg_test_objects::is_long;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use self::cases::{Case, PICKY, SLOW, STRICT, cases};

const LOGIN: Login<'static> = ("robot", "s3cret-of-the-repository");
/// The Cluster whose API server stops responding.
const GONE: &str = "gone";
/// The delay before the second attempt; it doubles with each.
const BACKOFF: f64 = 15.0;

/// How long calls are counted: longer than until the second attempt of what fails, or ten minutes.
fn watched() -> Duration {
    if is_long() { Duration::from_mins(10) } else { Duration::from_secs(40) }
}

// Rules: X4, X6, X9
#[tokio::test]
async fn bad_input_is_said_and_tried_again_later_and_loses_nothing() -> Result<()> {
    Box::pin(rule("x-bad", Setup::default().without_manager(), async |rig| {
        let lab = Lab::new(rig).await?;
        let begun = Instant::now();
        for case in &lab.cases {
            lab.apply(case).await?;
        }
        lab.disconnect().await?;
        for case in &lab.cases {
            lab.says(case).await?;
        }
        lab.is_not_hot(begun).await?;
        for case in &lab.cases {
            lab.correct(case).await?;
        }
        lab.reconnect().await?;
        lab.nothing_is_lost().await?;
        lab.end().await
    }))
    .await
}

struct Lab<'a> {
    rig: &'a Rig<'a>,
    charts: Charts,
    /// Over TLS, with a password.
    private: ChartRepository,
    addons: Addons,
    cases: [Case; 7],
    /// The kubeconfig of the Cluster whose API server stops responding.
    kubeconfig: String,
}

/// What the add-on provider has done so far.
#[derive(Debug)]
struct Calls {
    failed: u64,
    reconciles: u64,
    writes: usize,
}

impl<'a> Lab<'a> {
    /// A release of another actor, and one on two Clusters, exist.
    async fn new(rig: &'a Rig<'a>) -> Result<Self> {
        let (environment, namespace) = (&rig.scenario.environment, rig.scenario.namespace.as_str());
        let charts = Charts::serve(rig, &["1.0.0", "1.1.0"]).await?;
        charts.repository.add(&[STRICT, PICKY, SLOW].map(|chart| (chart, "1.0.0"))).await?;
        let private = ChartRepository::serve_to(rig.charts_folder("private"), LOGIN).await?;
        private.add(&[(DEMO, "1.0.0")]).await?;
        let api = shared_workload_api(environment).await?;
        rig.scenario.stub_cluster(GONE, api).await?;
        let addons = Addons::start(rig, environment.management()).await?;
        let cases = cases(&private);
        let lab = Self { rig, charts, private, addons, cases, kubeconfig: api.access().kubeconfig()? };
        let foreign =
            ["install", "foreign", "demo", "--repo", &lab.charts.repository.url, "--version", "1.0.0"];
        let helm = lab.charts.repository.helm_for(rig.cluster()?.kubeconfig());
        helm.run([&foreign[..], &["--create-namespace", "--namespace", namespace]].concat()).await?;
        for (name, data) in [
            ("login", json!({"username": LOGIN.0, "password": "another-s3cret"})),
            ("authority", json!({"ca.crt": lab.private.authority})),
        ] {
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
                "stringData": data,
            });
            rig.scenario.apply(&secret.to_string()).await?;
        }
        lab.change_cluster(CLUSTER, &json!({"metadata": {"labels": {"one": "true", "both": "true"}}}))
            .await?;
        lab.change_cluster(GONE, &json!({"metadata": {"labels": {"both": "true"}}})).await?;
        let spec = json!({"clusterSelector": {"matchLabels": {"both": "true"}}, "releaseName": null});
        lab.proxy("both", &spec).await?;
        for cluster in [CLUSTER, GONE] {
            lab.deployed("both", cluster, "1.0.0", 1).await?;
        }
        Ok(lab)
    }

    async fn apply(&self, case: &Case) -> Result<()> {
        self.proxy(case.name, &case.spec).await
    }

    async fn proxy(&self, name: &str, spec: &Value) -> Result<()> {
        let namespace = self.rig.scenario.namespace.as_str();
        let mut proxy = json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "clusterSelector": {"matchLabels": {"one": "true"}}, "chartName": "demo", "releaseName": name,
                "repoURL": self.charts.repository.url, "namespace": namespace, "version": "1.0.0",
            },
        });
        let changes = spec.as_object().context("no map")?;
        let target = proxy["spec"].as_object_mut().context("no map")?;
        target.extend(changes.iter().map(|(name, value)| (name.clone(), value.clone())));
        target.retain(|_, value| !value.is_null());
        self.rig.scenario.apply(&proxy.to_string()).await.map(drop)
    }

    async fn change_proxy(&self, name: &str, spec: &Value) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.addons.api("HelmChartProxy").patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    async fn change_cluster(&self, name: &str, patch: &Value) -> Result<()> {
        self.rig.clusters().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Replaces the data of a Secret.
    async fn set_secret(&self, name: &str, key: &str, value: &str) -> Result<()> {
        let secrets: Api<Secret> =
            Api::namespaced(self.rig.scenario.client.clone(), &self.rig.scenario.namespace);
        let patch = Patch::Merge(json!({"stringData": {key: value}}));
        secrets.patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// The API server of one Cluster stops responding before its release is upgraded. The other Cluster is not delayed.
    async fn disconnect(&self) -> Result<()> {
        let server = &shared_workload_api(&self.rig.scenario.environment).await?.access().server;
        let nowhere = self.kubeconfig.replace(server.as_str(), "https://127.0.0.1:1");
        self.set_secret(&format!("{GONE}-kubeconfig"), "value", &nowhere).await?;
        self.change_proxy("both", &json!({"version": "1.1.0"})).await?;
        self.deployed("both", CLUSTER, "1.1.0", 2).await?;
        let message = eventually("the Cluster is unreachable", async || {
            let release = self.addons.release_of("both", GONE).await?;
            let found = condition_of(&release, "ClusterAvailable");
            let is = found["status"] == "False" && found["reason"] == "ClusterUnreachable";
            Ok(Look::from_option(
                found["message"].as_str().filter(|_| is).map(str::to_owned),
                found.to_string(),
            ))
        })
        .await?;
        print_words("gone", &message);
        ensure!(message.starts_with("the API server of the Cluster has not responded since 20"), "{message}");
        Ok(())
    }

    async fn reconnect(&self) -> Result<()> {
        self.set_secret(&format!("{GONE}-kubeconfig"), "value", &self.kubeconfig).await?;
        // Otherwise the next periodic reconcile would notice.
        self.change_cluster(GONE, &json!({"metadata": {"annotations": {"e2e/changed": "true"}}})).await?;
        self.deployed("both", GONE, "1.1.0", 2).await
    }

    /// Waits until a condition says it, in these words.
    async fn says(&self, case: &Case) -> Result<()> {
        let (reason, words) = case.words;
        let found = eventually(&format!("{} says: {words}", case.name), async || {
            let found = if reason == "ValueParsingFailed" {
                let proxy = self.addons.api("HelmChartProxy").get(case.name).await?;
                condition_of(&proxy, "HelmReleaseProxySpecsUpToDate")
            } else {
                condition_of(&self.addons.release_of(case.name, CLUSTER).await?, "HelmReleaseReady")
            };
            // After an installation that failed, Helm has a release to upgrade: the second attempt may be here already.
            let message = found["message"].as_str().unwrap_or_default();
            let first = message.replace(": helm upgrade: ", ": helm install: ");
            // What follows is Go's own message.
            let is_said = if words.ends_with(' ') { message.starts_with(words) } else { first == words };
            let is = found["status"] == "False" && found["reason"] == reason && is_said;
            Ok(Look::from_option(is.then(|| message.to_owned()), found.to_string()))
        })
        .await?;
        print_words(case.name, &found);
        Ok(())
    }

    /// What fails is tried again as often as the growing intervals allow, and causes few reconciles and writes.
    async fn is_not_hot(&self, begun: Instant) -> Result<()> {
        let (before, from) = (self.calls().await?, Instant::now());
        let end = watched();
        // On a busy machine the second attempt is late.
        wait_until(Duration::from_mins(5).max(end * 2), "calls are counted", || async {
            let metrics = self.addons.metrics().await?;
            let mut outcomes = self.cases.iter().filter_map(|case| case.outcome);
            let are_tried = outcomes.all(|outcome| operations(&metrics, outcome) >= 2);
            Ok(Look::when(from.elapsed() >= end && are_tried, format!("for {:?}", from.elapsed())))
        })
        .await?;
        let metrics = self.addons.metrics().await?;
        let attempts = (begun.elapsed().as_secs_f64() / BACKOFF + 1.0).log2().floor() + 1.0;
        let mut failed = 0;
        for outcome in self.cases.iter().filter_map(|case| case.outcome) {
            let count = operations(&metrics, outcome);
            println!("x-bad: {outcome}: {count} operations in {:?}, at most {attempts}", begun.elapsed());
            #[expect(clippy::cast_precision_loss, reason = "a few")]
            let is_bounded = count >= 2 && count as f64 <= attempts;
            ensure!(is_bounded, "{outcome}: {count} operations in {:?}", begun.elapsed());
            failed += count;
        }
        let after = self.calls().await?;
        println!("x-bad: {before:?}, {:?} later {after:?}", from.elapsed());
        ensure!(after.failed == failed, "other operations failed: {after:?}");
        // An attempt changes a status twice, and each change is a reconcile of both objects.
        let tried = after.failed - before.failed;
        ensure!(after.reconciles - before.reconciles <= 4 * tried + 10, "{before:?} {after:?}");
        ensure!(after.writes - before.writes <= usize::try_from(4 * tried + 5)?, "{before:?} {after:?}");
        Ok(())
    }

    async fn calls(&self) -> Result<Calls> {
        let metrics = self.addons.metrics().await?;
        let all = sum(&metrics, "capasg_helm_operations_total", "");
        let succeeded = sum(&metrics, "capasg_helm_operations_total", "outcome=\"ok\"");
        let writes = self.rig.writes()?;
        let own = writes.iter().filter(|write| write.user.contains(":capasg-addons"));
        let reconciles = sum(&metrics, "capasg_reconciles_total", "");
        Ok(Calls { failed: all - succeeded, reconciles, writes: own.count() })
    }

    async fn correct(&self, case: &Case) -> Result<()> {
        if case.name == "locked" {
            self.set_secret("login", "password", LOGIN.1).await?;
        }
        self.change_proxy(case.name, &case.correction).await
    }

    /// Everything is deployed, and no revision is missing.
    async fn nothing_is_lost(&self) -> Result<()> {
        for case in &self.cases {
            eventually(&format!("{} is ready", case.name), async || {
                let release = self.addons.release_of(case.name, CLUSTER).await?;
                let is_ready = condition_of(&release, "Ready")["status"] == "True";
                Ok(Look::when(is_ready, release.data["status"].to_string()))
            })
            .await?;
            let history = self.charts.helm(&self.rig.scenario.namespace, &["history", case.name]).await?;
            let revisions: Vec<i64> = history.iter().filter_map(|one| one["revision"].as_i64()).collect();
            let expected: Vec<i64> = (1..=i64::try_from(history.len())?).collect();
            let last = history.last().context("no revision")?;
            println!("x-bad: {}: revisions {revisions:?}, the last one {}", case.name, last["status"]);
            ensure!(revisions == expected && last["status"] == "deployed", "{history:?}");
        }
        let foreign = self.charts.helm(&self.rig.scenario.namespace, &["history", "foreign"]).await?;
        ensure!(foreign.len() == 1, "the release of another actor was changed: {foreign:?}");
        Ok(())
    }

    /// Waits until a release is ready with a version of the chart and a revision.
    async fn deployed(&self, name: &str, cluster: &str, version: &str, revision: i64) -> Result<()> {
        eventually(&format!("{name} on {cluster} has revision {revision}"), async || {
            let release = self.addons.release_of(name, cluster).await?;
            let is = release.data["spec"]["version"] == version
                && release.data["status"]["revision"] == revision
                && condition_of(&release, "Ready")["status"] == "True";
            Ok(Look::when(is, release.data["status"].to_string()))
        })
        .await
    }

    async fn end(self) -> Result<()> {
        let log = self.addons.log()?;
        for secret in [LOGIN.1, "another-s3cret", "orbidden"] {
            ensure!(!log.contains(secret), "{secret} is in the log");
        }
        self.addons.stop().await
    }
}

fn print_words(name: &str, message: &str) {
    println!("x-bad: {name}: {message}");
}

/// How many operations of Helm had this outcome.
fn operations(metrics: &str, outcome: &str) -> u64 {
    sum(metrics, "capasg_helm_operations_total", &format!("outcome=\"{outcome}\""))
}

/// The sum of a counter over all series with a label.
fn sum(metrics: &str, name: &str, label: &str) -> u64 {
    let of = metrics.lines().filter(|line| line.starts_with(&format!("{name}{{")) && line.contains(label));
    of.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}
