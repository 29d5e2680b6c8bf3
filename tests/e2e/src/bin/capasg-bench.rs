//! Measures the manager on the real parts: calls to AWS, memory, processor time, and how fast an edit gets through.

use std::{
    collections::BTreeMap,
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{
    Pool,
    manifest::{Bootstrap, bootstrap_secret},
};
use capasg_environment::{
    Environment, Join, KubeletOptions, Kubelets, Look, ManagerOptions, Settings, WorkloadCluster, dynamic,
    process_stat, wait_until,
};
use capasg_fake_aws::{Counts, LogFilter, Scope, Simulator};
use chrono::{DateTime, Utc};
use clap::Parser;
use futures::future::try_join_all;
use kube::{
    Api,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::time::sleep;

const NAMESPACE: &str = "bench";
const CLUSTER: &str = "prod";
const REGION: &str = "eu-west-1";
const USER_DATA: &str = "#cloud-config\n# join the benchmark\n";

/// Ticks of processor time a second, as `/proc` counts them on Linux.
const TICKS: f64 = 100.0;

/// Measures the manager on the real control plane and the simulated AWS
#[derive(Parser)]
struct Arguments {
    /// Number of pools
    #[arg(long, default_value_t = 100)]
    pools: usize,
    /// Replicas of each pool
    #[arg(long, default_value_t = 5)]
    replicas: usize,
    /// Idle measurement period, in seconds
    #[arg(long, default_value_t = 600)]
    idle: u64,
    /// Number of instances to kill
    #[arg(long, default_value_t = 8)]
    kills: usize,
    /// Number of edits of replicas
    #[arg(long, default_value_t = 100)]
    edits: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let environment = Arc::new(Environment::start(Settings::from_env()).await?);
    let api = environment.workload_api().await?;
    environment.management().api().kubectl().run(["create", "namespace", NAMESPACE]).await?;
    let management = environment.management();
    let cluster = WorkloadCluster::stub(management, environment.tools(), NAMESPACE, CLUSTER, &api).await?;
    let options = KubeletOptions {
        join: Join::Marker("join the benchmark".to_owned()),
        version: environment.tools().kubernetes_version().to_owned(),
        remove_nodes: false,
    };
    let kubelets = Kubelets::start(&cluster, environment.cloud().instances(REGION), options).await?;
    let manager = environment.plan_manager(leading()).await?.start_ready().await?;
    let process = Process(manager.process().pid());
    let program = environment.settings().manager.clone().unwrap_or_default();
    eprintln!("measuring {}", program.display());

    let mut table = Vec::new();
    let simulator = environment.cloud().simulator();
    let client = environment.client().await?;
    let pools = dynamic(&client, NAMESPACE, "cluster.x-k8s.io", "v1beta2", "MachinePool");
    create(&environment, &pools, &arguments, simulator, &mut table).await?;
    idle(simulator, &process, &arguments, &mut table).await?;
    let ours = dynamic(&client, NAMESPACE, capasg_api::GROUP, "v1alpha1", "ASGMachinePool");
    kills(simulator, &ours, &arguments, &mut table).await?;
    edits(simulator, &pools, &arguments, &mut table).await?;
    table.push(row("peak resident memory", format!("{:.1} MB", process.status("VmHWM")?), ""));
    // Only the reads of a fleet at rest are to be counted.
    settled(simulator).await;
    manager.stop().await?;
    let mark = simulator.counts(&LogFilter::default()).last_sequence;
    let manager = environment.plan_manager(leading()).await?.start_ready().await?;
    restart(simulator, mark, &mut table).await?;

    println!("\n{} pools x {} instances, {}", arguments.pools, arguments.replicas, program.display());
    println!("{:<52} {:>12}   target", "", "measured");
    for [what, measured, wanted] in table {
        println!("{what:<52} {measured:>12}   {wanted}");
    }
    drop(kubelets);
    manager.stop().await?;
    api.stop().await?;
    management.stop().await
}

fn leading() -> ManagerOptions {
    ManagerOptions { leader_elect: true, ..ManagerOptions::default() }
}

fn row(what: &str, measured: String, wanted: &str) -> [String; 3] {
    [what.to_owned(), measured, wanted.to_owned()]
}

fn name(number: usize) -> String {
    format!("pool-{number:03}")
}

/// Applies all pools at once and waits until all run.
async fn create(
    environment: &Environment,
    pools: &Api<DynamicObject>,
    arguments: &Arguments,
    simulator: &Simulator,
    table: &mut Vec<[String; 3]>,
) -> Result<()> {
    let version = environment.tools().kubernetes_version();
    let bootstrap = Bootstrap::Missing("shared".to_owned());
    let mut items = vec![bootstrap_secret(CLUSTER, "shared", USER_DATA)];
    for number in 0..arguments.pools {
        let replicas = i32::try_from(arguments.replicas)?;
        let pool = Pool::new(&name(number), CLUSTER, REGION, version, bootstrap.clone()).replicas(replicas);
        items.extend([pool.ours(), pool.owner()]);
    }
    let begun = Instant::now();
    let kubectl = environment.management().api().kubectl().clone().limit(Duration::from_mins(10));
    let document = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    kubectl.feed(["apply", "--filename=-", "--namespace", NAMESPACE], &document).await?;
    let mut said = Instant::now();
    wait_until(Duration::from_mins(30), "all pools run", || {
        let report = said.elapsed() > Duration::from_secs(15);
        if report {
            said = Instant::now();
        }
        async move {
            let all = pools.list(&ListParams::default()).await?.items;
            let running = all.iter().filter(|pool| runs(pool, arguments.replicas)).count();
            if report {
                eprintln!("{running} of {} pools run after {:.0?}", arguments.pools, begun.elapsed());
            }
            // Looks at a hundred large objects are not free, and would be measured too.
            sleep(Duration::from_secs(1)).await;
            Ok(Look::when(running == arguments.pools, format!("{running} run")))
        }
    })
    .await?;
    table.push(row("all pools Running after", format!("{:.0} s", begun.elapsed().as_secs_f64()), ""));
    let counts = simulator.counts(&LogFilter::default());
    let per_pool = real(counts.calls) / real(arguments.pools);
    table.push(row("calls to AWS for each pool, until all run", format!("{per_pool:.2}"), "<= 8"));
    for (action, calls) in &counts.by_action {
        let each = real(*calls) / real(arguments.pools);
        table.push(row(&format!("  {action}"), format!("{each:.2}"), ""));
    }
    Ok(())
}

fn runs(pool: &DynamicObject, replicas: usize) -> bool {
    let refs = pool.data.pointer("/status/nodeRefs").and_then(Value::as_array).map_or(0, Vec::len);
    pool.data.pointer("/status/phase") == Some(&json!("Running")) && refs == replicas
}

/// The calls of each operation.
fn by_action(counts: &Counts) -> impl Iterator<Item = [String; 3]> {
    counts.by_action.iter().map(|(action, calls)| row(&format!("  {action}"), calls.to_string(), ""))
}

/// Waits until no change is in progress: until nothing was changed in AWS for a while.
async fn settled(simulator: &Simulator) {
    eprintln!("waiting until no change is in progress");
    let mut last = simulator.counts(&LogFilter::default().mutations()).calls;
    let mut still = Instant::now();
    while still.elapsed() < Duration::from_secs(70) {
        sleep(Duration::from_secs(1)).await;
        let now = simulator.counts(&LogFilter::default().mutations()).calls;
        if now != last {
            (last, still) = (now, Instant::now());
        }
    }
}

/// Watches while nothing happens.
async fn idle(
    simulator: &Simulator,
    process: &Process,
    arguments: &Arguments,
    table: &mut Vec<[String; 3]>,
) -> Result<()> {
    settled(simulator).await;
    eprintln!("watching for {} s", arguments.idle);
    let (cpu, begun) = (process.cpu_seconds()?, Instant::now());
    let mark = simulator.counts(&LogFilter::default()).last_sequence;
    sleep(Duration::from_secs(arguments.idle)).await;
    let spent = (process.cpu_seconds()? - cpu) / begun.elapsed().as_secs_f64();
    let since = simulator.counts(&LogFilter::default().since(mark));
    let minutes = begun.elapsed().as_secs_f64() / 60.0;
    table.push(row(
        "calls in 10 idle minutes",
        format!("{:.1}", real(since.calls) / minutes * 10.0),
        "<= 36 with up to 100 pools",
    ));
    table.extend(by_action(&since));
    table.push(row("mutations while idle", since.mutations.to_string(), "0"));
    table.push(row("resident memory, idle", format!("{:.1} MB", process.status("VmRSS")?), "<= 50 MB"));
    table.push(row("processor time in 10 idle minutes", format!("{:.2} s", spent * 600.0), "<= 4 s"));
    Ok(())
}

/// Kills instances of different pools, each at a random moment between two polls, and waits until they left the list.
async fn kills(
    simulator: &Simulator,
    ours: &Api<DynamicObject>,
    arguments: &Arguments,
    table: &mut Vec<[String; 3]>,
) -> Result<()> {
    eprintln!("killing {} instances", arguments.kills);
    let scope = Scope::region(REGION);
    let kill = async |number: usize| {
        // The nanoseconds of the clock are as good as dice.
        sleep(Duration::from_millis(u64::from(Utc::now().timestamp_subsec_nanos()) % 20_000)).await;
        let pool = name(number % arguments.pools);
        let group = capasg_api::names::aws_name(NAMESPACE, CLUSTER, &pool);
        let mut instances = simulator.dump(Some(REGION)).into_iter().flat_map(|dump| dump.instances);
        let victim = instances.find(|one| one.group.as_ref() == Some(&group));
        let id = victim.context("no instance")?.id;
        ensure!(simulator.kill(&scope, &id), "{id} was there");
        let killed = Instant::now();
        wait_until(Duration::from_mins(3), "the instance left the list", || {
            let (id, pool) = (id.clone(), pool.clone());
            async move {
                let own = ours.get(&pool).await?;
                let list = own.data.pointer("/spec/providerIDList").and_then(Value::as_array);
                let is_listed =
                    list.into_iter().flatten().filter_map(Value::as_str).any(|one| one.ends_with(&id));
                sleep(Duration::from_millis(200)).await;
                Ok(Look::when(!is_listed, "it is listed"))
            }
        })
        .await?;
        anyhow::Ok(killed.elapsed().as_secs_f64())
    };
    let mut times = try_join_all((0..arguments.kills).map(kill)).await?;
    times.sort_by(f64::total_cmp);
    for (what, percent, limit) in [("median", 50, ""), ("slowest", 100, "<= 25 s")] {
        let time = format!("{:.1} s", percentile(&times, percent));
        table.push(row(&format!("killed to left the list, {what} of {}", times.len()), time, limit));
    }
    Ok(())
}

/// Counts what a new process reads.
async fn restart(simulator: &Simulator, mark: u64, table: &mut Vec<[String; 3]>) -> Result<()> {
    eprintln!("counting the reads of a minute");
    sleep(Duration::from_mins(1)).await;
    let since = simulator.counts(&LogFilter::default().since(mark));
    let reads = (since.calls - since.mutations).to_string();
    table.push(row("reads in the first minute after a restart", reads, "< 60 with 105 pools"));
    table.extend(by_action(&since));
    Ok(())
}

/// Raises the replicas of one pool after the other and finds the capacity call that answers it.
async fn edits(
    simulator: &Simulator,
    pools: &Api<DynamicObject>,
    arguments: &Arguments,
    table: &mut Vec<[String; 3]>,
) -> Result<()> {
    eprintln!("editing replicas {} times", arguments.edits);
    let mut from_request = Vec::new();
    let mut from_answer = Vec::new();
    let mut wanted: BTreeMap<usize, usize> = BTreeMap::new();
    for edit in 0..arguments.edits {
        let pool = edit % arguments.pools;
        let replicas = wanted.entry(pool).or_insert(arguments.replicas);
        *replicas += 1;
        let group = capasg_api::names::aws_name(NAMESPACE, CLUSTER, &name(pool));
        let mark = simulator.counts(&LogFilter::default()).last_sequence;
        let patch = Patch::Merge(json!({"spec": {"replicas": *replicas}}));
        let asked = Utc::now();
        pools.patch(&name(pool), &PatchParams::default(), &patch).await?;
        let answered = Utc::now();
        let called = capacity_call(simulator, mark, &group).await?;
        from_request.push(seconds(called - asked));
        from_answer.push(seconds(called - answered));
        // People do not edit pools back to back; the launch that this starts should not be what is measured next.
        sleep(Duration::from_millis(1_500)).await;
    }
    for (what, mut times, limits) in [
        ("edit sent to capacity call", from_request, ["<= 0.05 s", "<= 0.25 s"]),
        ("edit answered to capacity call", from_answer, ["", ""]),
    ] {
        times.sort_by(f64::total_cmp);
        for (percent, limit) in [50, 99].into_iter().zip(limits) {
            table.push(row(
                &format!("{what}, p{percent}"),
                format!("{:.3} s", percentile(&times, percent)),
                limit,
            ));
        }
    }
    Ok(())
}

async fn capacity_call(simulator: &Simulator, mark: u64, group: &str) -> Result<DateTime<Utc>> {
    let filter = LogFilter { group: Some(group.to_owned()), ..LogFilter::default().since(mark).mutations() };
    let end = Instant::now() + Duration::from_mins(1);
    loop {
        let calls = simulator.log(&filter);
        let found = calls.iter().find(|call| call.params.get("DesiredCapacity").is_some());
        if let Some(call) = found {
            return call.wall_time.context("a call without a time");
        }
        ensure!(Instant::now() < end, "no capacity call for {group} within a minute");
        sleep(Duration::from_millis(5)).await;
    }
}

fn seconds(time: chrono::TimeDelta) -> f64 {
    time.as_seconds_f64()
}

fn real(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(rank).copied().unwrap_or(f64::NAN)
}

/// What Linux tells of a process.
struct Process(i32);

impl Process {
    /// User and system time so far.
    fn cpu_seconds(&self) -> Result<f64> {
        let fields = process_stat(self.0).context("the manager has ended")?;
        let ticks = |field: usize| -> Result<f64> { Ok(fields.get(field).context("too short")?.parse()?) };
        Ok((ticks(11)? + ticks(12)?) / TICKS)
    }

    /// A size in MB.
    fn status(&self, field: &str) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0))?;
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let kilobytes: f64 = line.context("no such field")?.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes * 1024.0 / 1e6)
    }
}
