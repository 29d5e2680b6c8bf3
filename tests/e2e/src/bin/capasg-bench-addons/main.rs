//! Measures the Helm add-on provider and Cluster API Add-on Provider for Helm (CAAPH) with the same Clusters and
//! `HelmChartProxies`, one after the other, each with API servers of its own on this machine.

mod fleet;
mod processes;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use capasg_e2e::Caaph;
use capasg_environment::{
    ApiServer, Audited, ChartRepository, Environment, Management, ManagementOptions, Manager, ManagerOptions,
    Settings, Write,
};
use chrono::{DateTime, Utc};
use clap::Parser;
use tokio::time::sleep;

use self::{
    fleet::Size,
    processes::{Peak, Tree},
};

/// Until what follows the last change has ended.
const SETTLED: Duration = Duration::from_secs(30);

/// Measures the Helm add-on provider, and CAAPH with the same
#[derive(Parser)]
struct Arguments {
    /// Number of Clusters
    #[arg(long, default_value_t = 100)]
    clusters: usize,
    /// Number of charts on each Cluster
    #[arg(long, default_value_t = 5)]
    charts: usize,
    /// Idle measurement period, in seconds
    #[arg(long, default_value_t = 180)]
    idle: u64,
    /// More arguments of the add-on provider, separated by spaces
    #[arg(long, default_value = "")]
    args: String,
    /// Measure the add-on provider alone
    #[arg(long)]
    alone: bool,
    /// Print calls by verb and resource
    #[arg(long)]
    calls: bool,
}

/// What was measured of one provider.
#[derive(Debug, Default)]
struct Measured {
    deployed: f64,
    processor: f64,
    peak: Peak,
    management: usize,
    workload: usize,
    idle_processor: f64,
    idle_resident: f64,
    idle_management: f64,
    idle_workload: f64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let size = Size { clusters: arguments.clusters, charts: arguments.charts };
    let settings = Settings { audited: Audited::All, ..Settings::from_env() };
    let environment = Environment::start(settings).await?;
    let repository = fleet::charts(environment.run().path().join("charts"), size).await?;
    let program = environment.settings().manager.clone().unwrap_or_default();
    eprintln!("measuring {}", program.display());

    let management = environment.management();
    let workload = environment.workload_api().await?;
    fleet::clusters(&environment, management, &workload, size).await?;
    let mut args = vec!["--allow-http-repositories=true".to_owned()];
    args.extend(arguments.args.split_whitespace().map(str::to_owned));
    let options = ManagerOptions { args, ..ManagerOptions::default() };
    let plan = environment.plan_addons(management, options).await?;
    let manager = plan.start_ready().await?;
    let user = format!("system:serviceaccount:{}:{}", plan.namespace(), plan.service_account());
    let lab = Lab { arguments: &arguments, size, repository: &repository, management, workload: &workload };
    let ours = lab.measure(manager, &user).await?;
    management.stop().await?;
    workload.stop().await?;

    let theirs =
        if arguments.alone { None } else { Some(of_caaph(&environment, &arguments, &repository).await?) };
    println!("\n{} Clusters x {} charts, {}", size.clusters, size.charts, program.display());
    print(&ours, theirs.as_ref());
    Ok(())
}

async fn of_caaph(
    environment: &Environment,
    arguments: &Arguments,
    repository: &ChartRepository,
) -> Result<Measured> {
    let size = Size { clusters: arguments.clusters, charts: arguments.charts };
    let options =
        ManagementOptions { name: "caaph".to_owned(), audited: Audited::All, ..ManagementOptions::default() };
    let caaph = Caaph::new(environment, options, environment.run().path().join("caaph")).await?;
    caaph.install().await?;
    let management = &caaph.management;
    let workload = environment.workload_api().await?;
    fleet::clusters(environment, management, &workload, size).await?;
    // Nor has the other one its Lease.
    let plan = caaph.plan().await?;
    let manager = plan.start_ready().await?;
    let user = format!("system:serviceaccount:{}:{}", plan.namespace(), plan.service_account());
    let lab = Lab { arguments, size, repository, management, workload: &workload };
    let measured = lab.measure(manager, &user).await?;
    management.stop().await?;
    workload.stop().await?;
    Ok(measured)
}

struct Lab<'a> {
    arguments: &'a Arguments,
    size: Size,
    repository: &'a ChartRepository,
    management: &'a Management,
    workload: &'a ApiServer,
}

impl Lab<'_> {
    /// From the `HelmChartProxies` to all releases, then while nothing changes.
    async fn measure(&self, manager: Manager, user: &str) -> Result<Measured> {
        let tree = Tree::of(manager.process().pid());
        let (begun, from, spent) = (Instant::now(), Utc::now(), tree.seconds()?);
        fleet::request(self.management, self.repository, self.size).await?;
        fleet::deployed(self.management, self.size).await?;
        let mut measured = Measured { deployed: begun.elapsed().as_secs_f64(), ..Measured::default() };
        eprintln!("all releases are ready after {:.0} s", measured.deployed);
        sleep(SETTLED).await;
        measured.processor = tree.seconds()? - spent;
        measured.peak = tree.peak();
        let (management, workload) = self.calls(user, from)?;
        (measured.management, measured.workload) = (management.len(), workload.len());
        if self.arguments.calls {
            print_calls("management, until all are ready", &management);
            print_calls("workload, until all are ready", &workload);
        }

        eprintln!("idle for {} s", self.arguments.idle);
        let (begun, from, spent) = (Instant::now(), Utc::now(), tree.seconds()?);
        sleep(Duration::from_secs(self.arguments.idle)).await;
        let ten_minutes = 600.0 / begun.elapsed().as_secs_f64();
        measured.idle_processor = (tree.seconds()? - spent) * ten_minutes;
        measured.idle_resident = tree.now().proportional;
        let (management, workload) = self.calls(user, from)?;
        measured.idle_management = real(management.len()) * ten_minutes;
        measured.idle_workload = real(workload.len()) * ten_minutes;
        if self.arguments.calls {
            print_calls("management, idle", &management);
            print_calls("workload, idle", &workload);
        }
        manager.process().ensure_running()?;
        manager.stop().await.context("the manager does not end")?;
        Ok(measured)
    }

    /// The requests of the provider to both API servers since a time.
    fn calls(&self, user: &str, from: DateTime<Utc>) -> Result<(Vec<Write>, Vec<Write>)> {
        let mut management = self.management.api().writes()?;
        management.retain(|call| call.received >= from && call.user == user);
        let mut workload = self.workload.writes()?;
        // The identity of the kubeconfig is the administrator's, also for core, which probes its connections.
        let others = ["kube-controller-manager", "kube-apiserver", "kubectl", "capi-"];
        workload.retain(|call| {
            let is_other = others.iter().any(|other| call.agent.starts_with(other));
            call.received >= from && !call.user.starts_with("system:") && !is_other
        });
        Ok((management, workload))
    }
}

fn real(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn print_calls(what: &str, calls: &[Write]) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for call in calls {
        let program = call.agent.split('/').next().unwrap_or_default();
        *counts
            .entry(format!("{program} {} {}/{}", call.verb, call.resource, call.subresource))
            .or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    println!("{what}:");
    for (call, count) in counts.iter().take(25) {
        println!("  {count:>7} {call}");
    }
}

fn print(ours: &Measured, theirs: Option<&Measured>) {
    type Part = fn(&Measured) -> f64;
    let rows: [(&str, Part); 10] = [
        ("seconds until all releases are ready", |it| it.deployed),
        ("seconds of processor time until then", |it| it.processor),
        ("peak memory in MB, shared pages once", |it| it.peak.proportional),
        ("peak memory in MB, resident", |it| it.peak.resident),
        ("calls of the management cluster until then", |it| real(it.management)),
        ("calls of the workload cluster until then", |it| real(it.workload)),
        ("idle: seconds of processor time in 10 minutes", |it| it.idle_processor),
        ("idle: memory in MB", |it| it.idle_resident),
        ("idle: calls of the management cluster in 10 minutes", |it| it.idle_management),
        ("idle: calls of the workload cluster in 10 minutes", |it| it.idle_workload),
    ];
    println!("{:<54} {:>10} {:>10} {:>8}", "", "capasg", "CAAPH", "ratio");
    for (what, part) in rows {
        let own = part(ours);
        match theirs.map(part) {
            Some(other) => println!("{what:<54} {own:>10.1} {other:>10.1} {:>8.2}", own / other),
            None => println!("{what:<54} {own:>10.1}"),
        }
    }
    println!("processes at most: {}", ours.peak.processes);
}
