//! X1: the sample manifests of CAAPH and the flows of its end-to-end tests, with CAAPH and with ours, field by field. The
//! page with the reasons for differences is `docs/contributors/addons-compared.md`, and the one with all fields
//! `out/addons-compared.md`.

mod differing;
mod fields;
mod flows;
mod named;
mod record;
mod side;
mod stored;
mod table;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{Addons, CLUSTER, Caaph, Charts, MAP, Rig, Setup, rule, shared_workload_api};
use capasg_environment::{Chart, Management, WorkloadCluster};
use capasg_test_objects::is_long;
use futures::future::try_join_all;
use serde_json::{Value, json};

use self::{
    differing::Differing,
    flows::OTHERS,
    named::{folder, named},
    record::{Flow, Record, Sample},
    side::Side,
    table::Row,
};
use super::other::{other, stop};

const ACCOUNT: &str =
    "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {{ .Release.Name }}-controller\n";
const FILES: &[(&str, &str)] = &[("templates/map.yaml", MAP), ("templates/account.yaml", ACCOUNT)];

/// The charts that samples and flows name.
const CHARTS: [(&str, &str); 7] = [
    ("metallb", "0.15.2"),
    ("metallb", "0.15.3"),
    ("cloud-provider-azure", "1.26.5"),
    ("mysql-operator", "2.0.0"),
    ("nginx-ingress", "2.0.0"),
    ("pgo", "5.3.1"),
    ("tigera-operator", "3.0.0"),
];

// Rules: X1
#[tokio::test]
async fn flows_of_caaph_have_the_same_fields_and_statuses() -> Result<()> {
    Box::pin(rule("x-compared", Setup::bare().without_manager(), async |rig| {
        let environment = &rig.scenario.environment;
        let charts = Charts::empty(rig, shared_workload_api(environment).await?.kubeconfig()).await?;
        let versions = CHARTS.map(|(name, version)| (Chart { name, files: FILES }, version));
        charts.repository.add(&versions).await?;
        if is_long() {
            Box::pin(theirs(rig, &charts)).await?.write()?;
        }
        let recorded = Record::read()?;
        let ours = Box::pin(ours(rig, &charts, &recorded.samples)).await?;
        let rows = table::compare(&recorded.flows, &ours);
        let (fields, same, differences) = table::figures(&rows);
        println!("x-compared: {fields} fields, {same} the same, {differences} differences");
        let named = named()?;
        let problems = table::problems(&rows, &named);
        is_recorded(&rows, problems.is_empty())?;
        ensure!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
        Ok(())
    }))
    .await
}

/// The page in the repository follows from what is recorded of both, without a control plane. Writes all fields into `out`.
#[test]
fn the_page_follows_from_what_is_recorded() -> Result<()> {
    let recorded = Record::read()?;
    let rows = table::compare(&recorded.flows, &Differing::read()?.applied_to(&recorded.flows));
    let problems = table::problems(&rows, &named()?);
    ensure!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
    is_page(&page(&rows)?)?;
    let folder = of_repository("out");
    fs::create_dir_all(&folder)?;
    Ok(fs::write(folder.join("addons-compared.md"), page(&rows)? + &table::fields(&rows, &named()?))?)
}

const PAGE: &str = "docs/contributors/addons-compared.md";

fn of_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn page(rows: &[Row]) -> Result<String> {
    let introduction = fs::read_to_string(folder().join("introduction.md"))?;
    Ok(table::page(&introduction, rows, &named()?))
}

fn is_page(page: &str) -> Result<()> {
    let known = fs::read_to_string(of_repository(PAGE))?;
    let differs = known.lines().zip(page.lines()).find(|(known, page)| known != page);
    ensure!(known == page, "{PAGE} differs: {differs:?}; write it with INSTA_UPDATE=always");
    Ok(())
}

/// Whether the page and our values in the repository are these. The long form writes them.
fn is_recorded(rows: &[Row], is_complete: bool) -> Result<()> {
    let differing = Differing::of(rows);
    if is_long() || std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always") {
        differing.write()?;
        return Ok(fs::write(of_repository(PAGE), page(rows)?)?);
    }
    if is_complete {
        is_page(&page(rows)?)?;
        let recorded = Record::read()?;
        let known = table::compare(&recorded.flows, &Differing::read()?.applied_to(&recorded.flows));
        let differs = known.iter().zip(rows).find(|(known, row)| known != row);
        ensure!(
            differing == Differing::read()?,
            "ours.json differs: {differs:?}; write it with INSTA_UPDATE=always"
        );
    }
    Ok(())
}

async fn ours(rig: &Rig<'_>, charts: &Charts, samples: &[Sample]) -> Result<Vec<Flow>> {
    let management = rig.scenario.environment.management();
    rig.scenario.stub_cluster(CLUSTER, shared_workload_api(&rig.scenario.environment).await?).await?;
    let addons = Addons::start(rig, management).await?;
    let flows = Box::pin(flows_with(rig, management, "ours", charts, samples)).await?;
    addons.stop().await?;
    Ok(flows)
}

async fn theirs(rig: &Rig<'_>, charts: &Charts) -> Result<Record> {
    let caaph = other(rig, "compared").await?;
    caaph.install().await?;
    let manager = caaph.plan().await?.start_ready().await?;
    let samples = samples().await?;
    let flows = Box::pin(flows_with(rig, &caaph.management, "theirs", charts, &samples)).await?;
    stop(manager).await?;
    Ok(Record { samples, flows })
}

/// The manifests that CAAPH comes with, and the one of its end-to-end tests.
async fn samples() -> Result<Vec<Sample>> {
    let folder = Caaph::sources().await?;
    let mut files: Vec<_> = fs::read_dir(folder.join("config/samples"))?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::path);
    let mut paths: Vec<_> = files.iter().map(fs::DirEntry::path).collect();
    paths.push(folder.join("test/e2e/data/addons-helm/v1beta2/bases/calico.yaml"));
    let read = |path: &Path| {
        let file = path.file_stem().context("no name")?.to_string_lossy().into_owned();
        let manifest: Value = serde_saphyr::from_str(&fs::read_to_string(path)?)?;
        Ok(Sample { file, manifest })
    };
    paths.iter().map(|path| read(path)).collect()
}

async fn flows_with(
    rig: &Rig<'_>,
    management: &Management,
    spaces: &str,
    charts: &Charts,
    samples: &[Sample],
) -> Result<Vec<Flow>> {
    let (environment, namespace) = (&rig.scenario.environment, rig.scenario.namespace.as_str());
    let workload = shared_workload_api(environment).await?;
    let side = Side::new(environment, management, (namespace, spaces), charts).await?;
    let labels: serde_json::Map<String, Value> = samples
        .iter()
        .filter_map(|sample| sample.manifest.pointer("/spec/clusterSelector/matchLabels")?.as_object())
        .flatten()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let network = json!({"pods": {"cidrBlocks": ["192.168.0.0/16"]}});
    let patch = json!({"metadata": {"labels": labels}, "spec": {"clusterNetwork": network}});
    side.change_cluster(CLUSTER, &patch).await?;
    // Before there are other Clusters: one of the samples selects all.
    let mut flows = try_join_all(samples.iter().map(|sample| flows::sample(&side, sample))).await?;
    for cluster in [OTHERS[0], OTHERS[2]] {
        WorkloadCluster::stub(management, environment.tools(), namespace, cluster, workload).await?;
    }
    side.remove_kubeconfig(OTHERS[2]).await?;
    side.create_uninitialized(OTHERS[1]).await?;
    let states = ["pending-install", "pending-upgrade", "pending-rollback", "uninstalling"];
    let (life, ownership, once, clusters, options, interrupted, reasons) = tokio::try_join!(
        flows::life(&side),
        flows::ownership(&side),
        flows::once(&side),
        flows::clusters(&side),
        flows::options(&side),
        try_join_all(states.map(|state| flows::interrupted(&side, state))),
        flows::reasons(&side),
    )?;
    flows.extend([life, ownership, once, clusters, options]);
    flows.extend(interrupted);
    flows.extend(reasons);
    Ok(flows)
}
