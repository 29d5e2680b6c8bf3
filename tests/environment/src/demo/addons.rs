//! Helm add-ons: a chart on a Cluster that a label selects, by the real Helm.

use anyhow::{Context as _, Result, ensure};
use capasg_environment::{
    ApiServer, Chart, ChartRepository, Environment, Look, Manager, ManagerOptions, Runner, WorkloadCluster,
    add_on_programs, report_stub_control_plane, wait_for_object, wait_gone, wait_until,
};
use kube::api::{DynamicObject, ListParams};
use serde_json::Value;
use tokio::task::spawn_blocking;

use super::{
    objects::{DEADLINE, NAMESPACE, Objects},
    stage::Stage,
    steps::Steps,
    upgrade::BEFORE,
};

/// The kinds.
const GROUP: &str = "addons.cluster.x-k8s.io";
const PROXIES: &str = "helmchartproxies,helmreleaseproxies";
/// The name of the `HelmChartProxy`, of its chart, of the release and of the namespace of the release.
const PROXY: &str = "hello";
/// The chart shows what it was installed with.
const CHART: Chart<'static> = Chart {
    name: PROXY,
    files: &[(
        "templates/map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  chart: {{ .Chart.Version | \
         quote }}\n  cluster: {{ .Values.cluster | quote }}\n  greeting: {{ .Values.greeting | quote }}\n",
    )],
};
const VERSIONS: &str =
    r#"[{"kubernetes": ">=1.34 <1.36", "version": "1.1.0"}, {"kubernetes": ">=1.36", "version": "1.2.0"}]"#;

/// The environment with the add-on provider, a workload cluster and a chart repository.
pub struct AddOns<'a> {
    environment: &'a Environment,
    objects: Objects<'a>,
    /// The charts.
    pub repository: ChartRepository,
    /// The API server of the workload cluster.
    pub workload: ApiServer,
    /// The add-on provider.
    pub manager: Manager,
}

impl<'a> AddOns<'a> {
    /// Starts them.
    pub async fn start(environment: &'a Environment, stage: &mut Stage) -> Result<Self> {
        stage.section("The Helm add-on provider");
        stage.print(
            "It runs as its Deployment says, with the rights of its service account, and Helm is the upstream program. \
             The workload cluster is a second kube-apiserver; its control plane provider is a stand-in.",
        );
        let args = vec!["--allow-http-repositories=true".to_owned()];
        let options = ManagerOptions {
            name: "addons".to_owned(),
            leader_elect: true,
            args,
            ..ManagerOptions::default()
        };
        let management = environment.management();
        let manager = environment.plan_addons(management, options).await?.start_ready().await?;
        let repository = ChartRepository::serve(environment.run().path().join("charts")).await?;
        repository.add(&["1.0.0", "1.1.0", "1.2.0"].map(|version| (CHART, version))).await?;
        let workload = environment.workload_api().await?;
        let tools = environment.tools();
        WorkloadCluster::stub(management, tools, NAMESPACE, Steps::CLUSTER, &workload).await?;
        let objects = Objects::of(environment).await?;
        let addons = Self { environment, objects, repository, workload, manager };
        addons.report(BEFORE).await?;
        stage.reached(&format!("the provider runs, and there is a Cluster of {BEFORE}"));
        Ok(addons)
    }

    /// Shows each step.
    pub async fn show(&self, stage: &mut Stage, keep: bool) -> Result<()> {
        self.install(stage).await?;
        self.change(stage).await?;
        self.fail(stage).await?;
        self.follow(stage).await?;
        self.drift(stage).await?;
        if keep {
            stage.section("The environment keeps running");
            return Ok(());
        }
        self.uninstall(stage).await
    }

    async fn install(&self, stage: &mut Stage) -> Result<()> {
        stage.section("A chart on each Cluster with a label");
        let proxy = self.proxy("1.0.0", "hello");
        stage.show("cat hello.yaml", &proxy);
        self.apply(stage, &proxy).await?;
        self.objects.run(stage, &["label", "cluster", Steps::CLUSTER, "add-ons=hello"]).await?;
        self.deployed("1.0.0", 1).await?;
        stage.reached("the release is installed, with values of the Cluster");
        self.objects.run(stage, &["get", PROXIES]).await?;
        self.helm(stage, &["list"]).await?;
        self.show_map(stage).await
    }

    async fn change(&self, stage: &mut Stage) -> Result<()> {
        stage.section("A change, before and after it is applied");
        let proxy = self.proxy("1.1.0", "good morning");
        self.diff(stage, &proxy).await?;
        self.apply(stage, &proxy).await?;
        self.deployed("1.1.0", 2).await?;
        stage.reached("the release is upgraded");
        self.helm(stage, &["history", PROXY]).await?;
        Ok(())
    }

    async fn fail(&self, stage: &mut Stage) -> Result<()> {
        stage.section("A version that the repository does not have");
        let set = async |version: &str| {
            let patch = format!(r#"{{"spec":{{"version":"{version}"}}}}"#);
            self.objects.run(stage, &["patch", "helmchartproxy", PROXY, "--type=merge", "-p", &patch]).await
        };
        set("9.9.9").await?;
        let message = self.says("HelmReleaseReady", "ChartNotFound").await?;
        stage.show("(the condition HelmReleaseReady of the HelmReleaseProxy)", &message);
        self.helm(stage, &["list"]).await?;
        stage.reached("the release stays as it is");
        set("1.1.0").await?;
        self.deployed("1.1.0", 2).await?;
        stage.reached("it is ready again, without another revision");
        Ok(())
    }

    async fn follow(&self, stage: &mut Stage) -> Result<()> {
        stage.section("The version of the chart by the version of Kubernetes");
        self.annotate(stage, &format!("versions={VERSIONS}")).await?;
        let version = self.environment.tools().kubernetes_version();
        stage.print(&format!("The control plane is upgraded from {BEFORE} to {version}."));
        self.report(version).await?;
        self.deployed("1.2.0", 3).await?;
        stage.reached("the release has the version for it");
        self.helm(stage, &["history", PROXY]).await?;
        Ok(())
    }

    async fn drift(&self, stage: &mut Stage) -> Result<()> {
        stage.section("Resources that another actor changed");
        let args = [
            "patch",
            "configmap",
            PROXY,
            "--type=merge",
            "-p",
            r#"{"data":{"greeting":"go away"}}"#,
            "--namespace",
            PROXY,
        ];
        stage.run(&workload_kubectl(), self.workload.kubectl(), &args).await?;
        self.annotate(stage, "drift=Report").await?;
        let message = self.says("Drifted", "greeting").await?;
        stage.show("(the condition Drifted of the HelmReleaseProxy)", &message);
        self.annotate(stage, "drift=Correct").await?;
        self.deployed("1.2.0", 4).await?;
        stage.reached("the release is corrected, by another revision");
        self.show_map(stage).await
    }

    async fn uninstall(&self, stage: &mut Stage) -> Result<()> {
        stage.section("Uninstall");
        self.objects.run(stage, &["delete", "helmchartproxy", PROXY, "--wait=false"]).await?;
        wait_gone(&self.objects.api(GROUP, "v1alpha1", "HelmChartProxy"), PROXY, DEADLINE).await?;
        let left = self.helm(stage, &["list"]).await?;
        ensure!(left.lines().count() == 1, "a release remains: {left}");
        stage.reached("the release is uninstalled");
        Ok(())
    }

    /// The `HelmChartProxy` of the demo.
    fn proxy(&self, version: &str, greeting: &str) -> String {
        format!(
            "apiVersion: {GROUP}/v1alpha1\nkind: HelmChartProxy\nmetadata:\n  name: hello\n  namespace: {}\nspec:\n  \
             clusterSelector:\n    matchLabels:\n      add-ons: hello\n  repoURL: {}\n  chartName: {}\n  version: \
             {version}\n  releaseName: hello\n  namespace: {PROXY}\n  valuesTemplate: |\n    cluster: {{{{ \
             .Cluster.metadata.name }}}}\n    greeting: {greeting}\n",
            NAMESPACE, self.repository.url, CHART.name
        )
    }

    async fn apply(&self, stage: &Stage, proxy: &str) -> Result<()> {
        let applied = self.objects.kubectl.feed(["apply", "--filename=-"], proxy).await?;
        stage.show("kubectl apply --filename=hello.yaml", &applied);
        Ok(())
    }

    /// What a change would do, as a user sees it before.
    async fn diff(&self, stage: &Stage, proxy: &str) -> Result<()> {
        let programs = spawn_blocking(|| add_on_programs(&|line| eprintln!("{line}"))).await??;
        let program = self.environment.settings().manager.clone().context("no program")?;
        let kubeconfig = self.environment.management().api().kubeconfig().display().to_string();
        let flag = |name: &str, program: &str| format!("--{name}={}", programs.join(program).display());
        let capasg = Runner::new(program).env("KUBECONFIG", kubeconfig).with("addons").with("diff");
        let args = [
            "--filename=-".to_owned(),
            "--allow-http-repositories".to_owned(),
            flag("helm", "helm"),
            flag("values-program", "capasg-values"),
        ];
        stage.show("capasg addons diff --filename=hello.yaml", &capasg.feed(args, proxy).await?);
        Ok(())
    }

    async fn annotate(&self, stage: &Stage, annotation: &str) -> Result<()> {
        let annotation = format!("asg.{GROUP}/{annotation}");
        let args = ["annotate", "--overwrite", "helmchartproxy", PROXY, &annotation];
        self.objects.run(stage, &args).await.map(drop)
    }

    /// The control plane has a version.
    async fn report(&self, version: &str) -> Result<()> {
        report_stub_control_plane(&self.objects.client, NAMESPACE, Steps::CLUSTER, version).await
    }

    async fn helm(&self, stage: &Stage, args: &[&str]) -> Result<String> {
        let args = [args, &["--namespace", PROXY]].concat();
        stage.run("helm", &self.repository.helm_for(self.workload.kubeconfig()), &args).await
    }

    async fn show_map(&self, stage: &Stage) -> Result<()> {
        let args = ["get", "configmap", PROXY, "--output=jsonpath={.data}", "--namespace", PROXY];
        stage.run(&workload_kubectl(), self.workload.kubectl(), &args).await.map(drop)
    }

    /// Waits until the release is ready with a version of the chart and a revision, and the `HelmChartProxy` reports it.
    async fn deployed(&self, version: &str, revision: i64) -> Result<()> {
        let name = self.release().await?;
        let is_ready = |object: &DynamicObject| {
            let is_current =
                object.data["status"]["observedGeneration"].as_i64() == object.metadata.generation;
            is_current && condition(object, "Ready")["status"] == "True"
        };
        let releases = self.objects.api(GROUP, "v1alpha1", "HelmReleaseProxy");
        wait_for_object(&releases, &name, DEADLINE, |release| {
            let is =
                release.data["spec"]["version"] == version && release.data["status"]["revision"] == revision;
            Look::when(is && is_ready(release), release.data["status"].to_string())
        })
        .await?;
        let proxies = self.objects.api(GROUP, "v1alpha1", "HelmChartProxy");
        wait_for_object(&proxies, PROXY, DEADLINE, |proxy| {
            Look::when(is_ready(proxy), proxy.data["status"].to_string())
        })
        .await
    }

    /// Waits until a condition of the `HelmReleaseProxy` has these words, and answers its message.
    async fn says(&self, type_: &str, words: &str) -> Result<String> {
        let name = self.release().await?;
        let releases = self.objects.api(GROUP, "v1alpha1", "HelmReleaseProxy");
        wait_for_object(&releases, &name, DEADLINE, |release| {
            let message = condition(release, type_)["message"].as_str().unwrap_or_default();
            Look::from_option(message.contains(words).then(|| message.to_owned()), message)
        })
        .await
    }

    /// The name of the only `HelmReleaseProxy`.
    async fn release(&self) -> Result<String> {
        let releases = self.objects.api(GROUP, "v1alpha1", "HelmReleaseProxy");
        wait_until(DEADLINE, "a HelmReleaseProxy", || async {
            let found = releases.list(&ListParams::default()).await?.items.pop();
            Ok(Look::from_option(found.and_then(|one| one.metadata.name), "there is none"))
        })
        .await
    }
}

fn condition<'a>(object: &'a DynamicObject, type_: &str) -> &'a Value {
    let all = object.data["status"]["conditions"].as_array();
    all.and_then(|all| all.iter().find(|one| one["type"] == type_)).unwrap_or(&Value::Null)
}

fn workload_kubectl() -> String {
    format!("kubectl --kubeconfig {}.yaml", Steps::CLUSTER)
}
