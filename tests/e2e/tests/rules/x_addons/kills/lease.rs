//! X7: the leader loses its Lease while Helm works for it. Its Helm ends before that of the next leader begins.

use std::{
    io::Write as _,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{Rig, Setup, eventually, rule};
use capasg_environment::{Balancer, Chart, Look, Manager, ManagerOptions, ManagerPlan};
use chrono::{SecondsFormat, Utc};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::PersistentVolumeClaim};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio::time::timeout;

use super::{
    helms::{Helms, call},
    release::{MANY, RELEASE, Release},
};

const LEASE: &str = "controller-leader-election-capasg-addons";
const DEADLINE: Duration = Duration::from_mins(4);

/// Ready once its claim is bound, which only the test reports. Not a load balancer: deletions of Clusters wait for those.
const CLAIMING: Chart<'static> = Chart {
    name: "claiming",
    files: &[
        MANY.files[0],
        (
            "templates/claim.yaml",
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: {{ .Release.Name }}\nspec:\n  accessModes: \
             [ReadWriteOnce]\n  resources:\n    requests:\n      storage: 1Gi\n",
        ),
    ],
};

/// How a leader loses its Lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// It has another holder.
    Taken,
    /// The API server does not respond to this replica.
    Disconnected,
}

// Rules: X7
#[tokio::test]
async fn helm_ends_with_a_lease_that_is_taken() -> Result<()> {
    lost(Loss::Taken).await
}

// Rules: X7
#[tokio::test]
#[ignore = "long form: differs from the test above in the cause alone"]
async fn helm_ends_with_a_lease_that_cannot_be_renewed() -> Result<()> {
    lost(Loss::Disconnected).await
}

async fn lost(loss: Loss) -> Result<()> {
    Box::pin(rule("x-lease", Setup::default().without_manager(), async |rig| {
        let release = Release::new(rig, CLAIMING).await?;
        let server = rig.scenario.environment.management().api().access().server.clone();
        let port = server.rsplit(':').next().context("no port")?.parse()?;
        let cut = Balancer::start(vec![port]).await?;

        let first = Replica::plan(rig, "first", Some(&cut)).await?;
        let second = Replica::plan(rig, "second", None).await?;
        permit_lease(rig, &second.plan).await?;
        let folders = vec![first.folder.clone(), second.folder.clone()];
        let helms = Helms::observe(rig.scenario.environment.run().path(), folders);
        let leader = first.plan.start_ready().await?;
        release.request(CLAIMING.name, "1.0.0", "first", &json!({"wait": true})).await?;
        helms.appears(&first.folder, DEADLINE, |child| call(child) == "install").await?;
        release.has_revision(1).await?;
        let standby = second.plan.start_ready().await?;

        let from = Instant::now();
        let held = match loss {
            Loss::Taken => take(rig).await.map(|()| None)?,
            Loss::Disconnected => Some(cut.watch()),
        };
        let status = timeout(DEADLINE, leader.process().exited()).await.context("the leader stays")??;
        ensure!(!status.success(), "the leader ended with {status}");
        let ended = helms.end(&first.folder, from, DEADLINE).await?;
        ensure!(helms.running(&second.folder).is_none(), "the next leader did not wait");
        helms.appears(&second.folder, DEADLINE, |_| true).await?;
        let began = from.elapsed();
        helms.appears(&second.folder, DEADLINE, |child| call(child) == "upgrade").await?;
        bind(rig).await?;
        let newest = release.is_deployed("1.0.0", "first").await?;
        release.is_whole(newest).await?;
        helms.were_alone()?;
        writeln!(
            std::io::stderr(),
            "x-lease: {loss:?}: Helm of the leader ended after {ended:.1?}, that of the next one began after {began:.1?}"
        )?;
        drop(held);
        let log = standby.log()?;
        ensure!(!log.contains("orbidden"), "a permission is missing: {log}");
        stop(standby).await
    }))
    .await
}

async fn stop(manager: Manager) -> Result<()> {
    let status = manager.stop().await?;
    ensure!(status.success(), "the add-on provider ended with {status}");
    Ok(())
}

/// A replica of the add-on provider, which leads with the Lease in the namespace of the test.
struct Replica {
    plan: ManagerPlan,
    folder: PathBuf,
}

impl Replica {
    async fn plan(rig: &Rig<'_>, name: &str, through: Option<&Balancer>) -> Result<Self> {
        let (environment, namespace) = (&rig.scenario.environment, &rig.scenario.namespace);
        let management = environment.management();
        let mut options = ManagerOptions {
            name: format!("addons-{namespace}-{name}"),
            leader_elect: true,
            args: vec![
                format!("--namespace={namespace}"),
                format!("--leader-election-namespace={namespace}"),
                "--allow-http-repositories=true".to_owned(),
            ],
            ..ManagerOptions::default()
        };
        let folder = environment.addons_folder(management, &options.name);
        if let Some(through) = through {
            let plan = environment.plan_addons(management, options.clone()).await?;
            let mut access =
                management.api().access().as_service_account(plan.namespace(), plan.service_account());
            access.server = format!("https://127.0.0.1:{}", through.port());
            let file = environment.run().path().join("kubeconfigs").join(format!("{namespace}-{name}.yaml"));
            options.args.push(format!("--kubeconfig={}", access.write(&file)?.display()));
        }
        Ok(Self { plan: environment.plan_addons(management, options).await?, folder })
    }
}

/// The rights of the service account on its Lease, in the namespace of the test: other tests hold the one in its own.
async fn permit_lease(rig: &Rig<'_>, plan: &ManagerPlan) -> Result<()> {
    let role = json!([
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [LEASE], "verbs": ["get", "update"]},
    ]);
    let metadata = json!({"name": "leader-election"});
    let group = "rbac.authorization.k8s.io";
    let items = json!([
        {"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": metadata, "rules": role},
        {
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "leader-election"},
            "subjects": [
                {"kind": "ServiceAccount", "name": plan.service_account(), "namespace": plan.namespace()},
            ],
        },
    ]);
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    rig.scenario.apply(&list.to_string()).await.map(drop)
}

/// Another holder is written into the Lease; it does not renew it.
async fn take(rig: &Rig<'_>) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(rig.scenario.client.clone(), &rig.scenario.namespace);
    let now = Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true);
    let taken = Patch::Merge(json!({"spec": {"holderIdentity": "another", "renewTime": now}}));
    leases.patch(LEASE, &PatchParams::default(), &taken).await?;
    Ok(())
}

/// Reports that the claim of the release is bound, as the controller of volumes does.
async fn bind(rig: &Rig<'_>) -> Result<()> {
    let claims: Api<PersistentVolumeClaim> =
        Api::namespaced(rig.cluster()?.client().await?, &rig.scenario.namespace);
    let status = Patch::Merge(json!({"status": {"phase": "Bound"}}));
    eventually("the claim is bound", async || {
        claims.patch_status(RELEASE, &PatchParams::default(), &status).await?;
        Ok(Look::Done(()))
    })
    .await
}
