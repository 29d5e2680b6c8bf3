//! What holds for every spec and every history. Failures name the input; the same input fails again.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use capasg_api::{
    ASGMachinePoolSpec,
    names::annotations,
    pool::{
        Drain, InstanceTypeEntry, InstancesDistribution, OnCloudTermination, RootVolume, ScaleInOrder,
        SubnetSelector,
    },
};
use capasg_fake_aws::{Effect, Fault, Service, Settings, Tree};
use capasg_simulation::{Pool, Setup, World, pool_spec, run};
use chrono::TimeDelta;
use kube::ResourceExt;
use proptest::{
    prelude::*,
    test_runner::{RngSeed, TestCaseError},
};
use serde_json::{Value, json};

use crate::{SOON, ended_since};

/// The same inputs in every run, unless `PROPTEST_RNG_SEED` and `PROPTEST_CASES` say otherwise.
fn cases(cases: u32) -> ProptestConfig {
    let standard = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { standard.cases } else { cases };
    let rng_seed = match standard.rng_seed {
        RngSeed::Random => RngSeed::Fixed(20_260_101),
        RngSeed::Fixed(seed) => RngSeed::Fixed(seed),
    };
    ProptestConfig { cases, rng_seed, failure_persistence: None, max_shrink_iters: 200, ..standard }
}

fn check(future: impl Future<Output = Result<()>>) -> Result<(), TestCaseError> {
    run(future).flatten().map_err(|error| TestCaseError::fail(format!("{error:#}")))
}

/// Caches and reads of AWS that are up to date or seconds behind.
fn setups() -> impl Strategy<Value = Setup> {
    let lags = (prop::sample::select(vec![0, 20, 1_500]), prop::sample::select(vec![0, 0, 2_500]));
    (any::<u64>(), lags, 0..60_u64).prop_map(|(seed, (lag_millis, read_lag_millis), meanwhile_percent)| {
        Setup {
            seed,
            settings: Settings { read_lag_millis, ..Settings::default() },
            lag_millis,
            meanwhile_percent,
            ..Setup::default()
        }
    })
}

/// A spec that AWS takes.
fn specs() -> impl Strategy<Value = ASGMachinePoolSpec> {
    let types = prop::sample::subsequence(vec!["m7i.large", "m6i.large", "c7i.xlarge"], 1..=3);
    let subnets =
        prop::sample::subsequence(vec!["subnet-0a1b2c3d", "subnet-0b1c2d3e", "subnet-0c1d2e3f"], 1..=3);
    let tags = prop::collection::btree_map("[a-z]{1,8}", "[a-z ]{0,8}", 0..3);
    let distribution = prop::option::of((0..3_i32, 0..=100_i32));
    (types, subnets, tags, distribution, any::<[bool; 6]>()).prop_map(
        |(types, subnets, tags, distribution, [newest, ignore, parameter, volume, profile, warmup])| {
            let mut spec = pool_spec();
            spec.instance_types = types.into_iter().map(InstanceTypeEntry::new).collect();
            let by_id = |id: &str| SubnetSelector { id: Some(id.to_owned()), ..SubnetSelector::default() };
            spec.subnets = subnets.into_iter().map(by_id).collect();
            spec.tags = tags;
            spec.instances_distribution = distribution.map(|(base, percentage)| InstancesDistribution {
                on_demand_base_capacity: Some(base),
                on_demand_percentage_above_base_capacity: Some(percentage),
                ..InstancesDistribution::default()
            });
            spec.scale_in_order = newest.then_some(ScaleInOrder::Newest);
            spec.drain = ignore.then(|| Drain {
                on_cloud_termination: Some(OnCloudTermination::Ignore),
                ..Drain::default()
            });
            if parameter {
                spec.machine.image.id = None;
                spec.machine.image.ssm_parameter = Some("/images/node/v{version}".to_owned());
            }
            spec.machine.root_volume =
                volume.then(|| RootVolume { size_gib: Some(40), ..RootVolume::default() });
            spec.machine.iam_instance_profile = profile.then(|| "nodes".to_owned());
            if warmup {
                spec.group = Some(capasg_api::pool::Group {
                    default_instance_warmup_seconds: Some(60),
                    ..capasg_api::pool::Group::default()
                });
            }
            spec
        },
    )
}

/// Something that happens to a running pool.
#[derive(Debug, Clone)]
enum Happening {
    Scale(i32),
    DeleteMachine(usize),
    DeleteAsgMachine(usize),
    Kill(usize),
    Unhealthy(usize),
    Annotate(usize),
    Rotate,
    Restart,
    CrashAfter(usize),
    Conflicts,
    ApiFailures,
    EmptyLists(u32),
    Lose(bool, usize),
    Pause,
}

fn happenings() -> impl Strategy<Value = Happening> {
    let which = 0..8_usize;
    prop_oneof![
        4 => (0..6_i32).prop_map(Happening::Scale),
        2 => which.clone().prop_map(Happening::DeleteMachine),
        1 => which.clone().prop_map(Happening::DeleteAsgMachine),
        1 => which.clone().prop_map(Happening::Kill),
        1 => which.clone().prop_map(Happening::Unhealthy),
        1 => which.prop_map(Happening::Annotate),
        1 => Just(Happening::Rotate),
        1 => Just(Happening::Restart),
        2 => (1..6_usize).prop_map(Happening::CrashAfter),
        1 => Just(Happening::Conflicts),
        1 => Just(Happening::ApiFailures),
        1 => (1..4_u32).prop_map(Happening::EmptyLists),
        2 => (any::<bool>(), 0..4_usize).prop_map(|(reply, call)| Happening::Lose(reply, call)),
        1 => Just(Happening::Pause),
    ]
}

const LOSABLE: [&str; 4] = [
    "TerminateInstanceInAutoScalingGroup",
    "UpdateAutoScalingGroup",
    "SetDesiredCapacity",
    "CompleteLifecycleAction",
];

/// How many instances we may terminate at most.
#[derive(Default)]
struct Budget {
    /// By what was requested.
    ends: usize,
    /// Those that had stopped already: to terminate them costs nothing.
    dead: BTreeSet<String>,
}

async fn happen(world: &mut World, pool: &Pool, what: &Happening, budget: &mut Budget) -> Result<()> {
    let nth = |of: Vec<String>, which: usize| of.into_iter().cycle().nth(which);
    let machines: Vec<String> = world.machines(pool).into_keys().collect();
    let instances: Vec<String> = world.in_service(pool).into_iter().collect();
    match what {
        Happening::Scale(replicas) => {
            let before = world.machine_pool(pool).context("the MachinePool")?.replicas();
            budget.ends += usize::try_from(before - replicas).unwrap_or(0);
            world.scale(pool, *replicas);
        }
        Happening::DeleteMachine(which) => {
            if let Some(machine) = nth(machines, *which) {
                budget.ends += 1;
                world.delete_machine(&machine);
            }
        }
        Happening::DeleteAsgMachine(which) => {
            let machines: Vec<String> = world.asg_machines(pool).into_keys().collect();
            if let Some(machine) = nth(machines, *which) {
                budget.ends += 1;
                world.delete_asg_machine(&machine);
            }
        }
        Happening::Annotate(which) => {
            if let Some(machine) = nth(machines, *which) {
                world.edit_machine(&machine, |machine| {
                    machine.annotations_mut().insert(annotations::DELETE_MACHINE.to_owned(), "me".to_owned());
                });
            }
        }
        Happening::Kill(which) => {
            if let Some(id) = nth(instances, *which) {
                world.simulator.kill(&world.scope(), &id);
                budget.dead.insert(id);
            }
        }
        Happening::Unhealthy(which) => {
            if let Some(id) = nth(instances, *which) {
                let params = Tree::new()
                    .with("InstanceId", id)
                    .with("HealthStatus", "Unhealthy")
                    .with("ShouldRespectGracePeriod", false);
                // It may be on its way out already.
                let _ = world.aws(Service::AutoScaling, "SetInstanceHealth", params);
            }
        }
        Happening::Rotate => world.rotate_token(pool),
        Happening::Restart => world.kill_process(),
        Happening::CrashAfter(writes) => world.crash_after(*writes),
        Happening::Conflicts => world.api.add_conflicts(2),
        Happening::ApiFailures => world.api.add_failures(2),
        Happening::EmptyLists(count) => world.empty_lists(*count),
        Happening::Lose(reply, call) => {
            let effect = if *reply { Effect::LoseReply } else { Effect::LoseRequest };
            world.fault(Fault::new(LOSABLE[*call], effect));
        }
        Happening::Pause => {
            world.edit_cluster(|cluster| cluster.spec.paused = Some(true));
            world.run_for(TimeDelta::seconds(40)).await?;
            world.edit_cluster(|cluster| cluster.spec.paused = None);
        }
    }
    Ok(())
}

/// Lives through a history; the watchdog of the world checks every action on the way: the list keeps the living, nothing
/// ends undrained or twice, desired capacity never falls too low, replicas are never overshot downwards.
async fn live(setup: Setup, spec: ASGMachinePoolSpec, history: Vec<(Happening, i64)>) -> Result<()> {
    let mut world = World::new(setup);
    let pool = world.add_pool_with("workers", 3, |own| *own = spec);
    world.run_until("3 running", SOON, |world| world.is_running(&pool, 3)).await?;
    let mut budget = Budget::default();
    for (happening, pause) in &history {
        happen(&mut world, &pool, happening, &mut budget).await?;
        world.run_for(TimeDelta::seconds(*pause)).await?;
    }
    world.simulator.clear_faults(None);
    // A pool that rests makes no call that would meet a failure of the API server before its next process does.
    world.forgive();
    let replicas = usize::try_from(world.machine_pool(&pool).context("the MachinePool")?.replicas())?;
    world.run_until("it settles", TimeDelta::minutes(40), |world| world.is_running(&pool, replicas)).await?;
    let ended: Vec<String> = ended_since(&world, 0).into_iter().map(|(id, _)| id).collect();
    let ends = ended.iter().filter(|id| !budget.dead.contains(*id)).count();
    ensure!(
        ends <= budget.ends,
        "{ends} were terminated, at most {} requested: {ended:?}\n{}",
        budget.ends,
        world.describe()
    );
    quiet(&mut world).await?;
    world.delete_machine_pool(&pool);
    world.run_until("everything is gone", SOON, |world| world.is_gone(&pool)).await?;
    let left = world.simulator.leftovers(None);
    ensure!(left.is_empty(), "left in the cloud: {left:?}");
    world.finish()
}

/// After a full act a second decide is empty: neither the same process nor a new one writes anything.
async fn quiet(world: &mut World) -> Result<()> {
    world.run_for(TimeDelta::minutes(3)).await?;
    for restart in [false, true] {
        let (mark, writes) = (world.mark(), world.journal.len());
        if restart {
            world.kill_process();
        }
        world.run_for(TimeDelta::minutes(12)).await?;
        let calls: Vec<String> = world.mutations_since(mark).into_iter().map(|call| call.action).collect();
        ensure!(calls.is_empty(), "restart {restart}: {calls:?}");
        let made: Vec<String> = world
            .journal
            .since(writes)
            .into_iter()
            .filter(|entry| !restart || entry.changed)
            .map(|entry| entry.what)
            .collect();
        ensure!(made.is_empty(), "restart {restart}: {made:?}");
    }
    Ok(())
}

/// Forms of a field that mean the same: first its path, then the forms; null stands for the field left out.
fn equivalents(mixed: bool) -> Vec<(&'static str, Vec<Value>)> {
    let distribution = if mixed {
        let full = json!({ "onDemandBaseCapacity": 0, "onDemandPercentageAboveBaseCapacity": 100,
            "onDemandAllocationStrategy": "prioritized", "spotAllocationStrategy": "price-capacity-optimized" });
        vec![Value::Null, json!({}), full]
    } else {
        vec![Value::Null]
    };
    vec![
        ("/minSize", vec![Value::Null, json!(0)]),
        ("/scaleInOrder", vec![Value::Null, json!("Oldest")]),
        ("/tags", vec![Value::Null, json!({})]),
        ("/deletionPolicy", vec![Value::Null, json!("Delete")]),
        ("/instancesDistribution", distribution),
        (
            "/drain",
            vec![
                Value::Null,
                json!({}),
                json!({ "onCloudTermination": "Drain" }),
                json!({ "onCloudTermination": "Drain", "onPoolDeletion": "Drain", "timeoutSeconds": 3600 }),
            ],
        ),
        (
            "/group",
            vec![
                Value::Null,
                json!({}),
                json!({ "healthCheckTypes": [] }),
                json!({ "healthCheckTypes": ["EC2"], "suspendedProcesses": ["AZRebalance"] }),
                json!({ "healthCheckGracePeriodSeconds": 300, "defaultCooldownSeconds": 300 }),
            ],
        ),
        (
            "/machine/securityGroups",
            vec![json!([{ "id": "sg-0b1c2d3e" }]), json!([{ "id": "sg-0b1c2d3e" }, { "id": "sg-0b1c2d3e" }])],
        ),
        ("/machine/dataVolumes", vec![Value::Null, json!([])]),
        (
            "/machine/metadataOptions",
            vec![
                Value::Null,
                json!({}),
                json!({ "httpTokens": "required", "httpPutResponseHopLimit": 1 }),
                json!({ "httpEndpoint": "enabled", "httpProtocolIPv6": "disabled" }),
            ],
        ),
        (
            "/machine/rootVolume",
            vec![
                Value::Null,
                json!({}),
                json!({ "type": "gp3", "encryption": "Encrypted", "onTermination": "Delete" }),
                json!({ "iops": 3000, "throughputMiBps": 125 }),
            ],
        ),
        (
            "/subnets",
            vec![
                json!([{ "id": "subnet-0a1b2c3d" }, { "id": "subnet-0b1c2d3e" }]),
                json!([{ "id": "subnet-0b1c2d3e" }, { "id": "subnet-0a1b2c3d" }]),
                json!([{ "id": "subnet-0a1b2c3d" }, { "id": "subnet-0b1c2d3e" }, { "id": "subnet-0a1b2c3d" }]),
            ],
        ),
    ]
}

/// The spec with a field in one of its forms.
fn in_form(spec: &ASGMachinePoolSpec, path: &str, form: &Value) -> Result<ASGMachinePoolSpec> {
    let mut json = serde_json::to_value(spec)?;
    let (parent, member) = path.rsplit_once('/').context("a path")?;
    let parent = json.pointer_mut(parent).and_then(Value::as_object_mut).context("an object")?;
    if form.is_null() {
        parent.remove(member);
    } else {
        parent.insert(member.to_owned(), form.clone());
    }
    Ok(serde_json::from_value(json)?)
}

async fn rewrite(mixed: bool, edits: Vec<(usize, usize)>) -> Result<()> {
    let mut world = World::new(Setup { watch: false, ..Setup::default() });
    let pool = world.add_pool_with("workers", 1, |spec| {
        spec.subnets.truncate(2);
        if mixed {
            spec.instance_types.push(InstanceTypeEntry::new("m6i.large"));
        }
    });
    world.run_until("1 running", SOON, |world| world.is_running(&pool, 1)).await?;
    world.run_for(TimeDelta::minutes(2)).await?;
    let mark = world.mark();
    let forms = equivalents(mixed);
    for (field, form) in edits {
        let (path, forms) = &forms[field % forms.len()];
        let form = &forms[form % forms.len()];
        let spec = in_form(&world.pool(&pool).context("the pool")?.spec, path, form)?;
        world.edit_pool(&pool, |pool| pool.spec = spec);
        world.run_for(TimeDelta::seconds(20)).await?;
        let calls: Vec<String> = world.mutations_since(mark).into_iter().map(|call| call.action).collect();
        ensure!(calls.is_empty(), "{path} as {form}: {calls:?}");
    }
    let up_to_date = world.pool(&pool).and_then(|pool| Some(pool.status.as_ref()?.up_to_date_replicas));
    ensure!(up_to_date == Some(1), "outdated by a form");
    Ok(())
}

proptest! {
    #![proptest_config(cases(24))]

    // Pains: P2, P3
    #[test]
    fn every_history_converges_and_then_nothing_is_written(
        setup in setups(),
        spec in specs(),
        history in prop::collection::vec((happenings(), 0..90_i64), 1..10),
    ) {
        check(live(setup, spec, history))?;
    }
}

proptest! {
    #![proptest_config(cases(12))]

    // Pains: P1, P4, W3
    #[test]
    fn absent_empty_and_default_forms_of_a_field_are_the_same(
        mixed in any::<bool>(),
        edits in prop::collection::vec((0..64_usize, 0..64_usize), 1..25),
    ) {
        check(rewrite(mixed, edits))?;
    }
}

/// Every form of every field at least once.
// Pains: P1, P4, W2, W3
#[tokio::test(start_paused = true)]
async fn each_form_of_each_field_is_the_same() -> Result<()> {
    for mixed in [false, true] {
        for (field, (_, forms)) in equivalents(mixed).into_iter().enumerate() {
            rewrite(mixed, (0..=forms.len()).map(|form| (field, form)).collect()).await?;
        }
    }
    Ok(())
}
