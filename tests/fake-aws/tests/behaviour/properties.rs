//! Random calls at random times: nothing panics, no bound is broken, nothing dangles.

use capasg_fake_aws::{ApiError, Tree};
use chrono::Duration;
use proptest::prelude::*;

use crate::kit::{Kit, group, named, nodes};

#[derive(Debug, Clone)]
enum Step {
    SetDesired(i64),
    Bounds(i64, i64),
    End { index: usize, decrement: bool, twice: bool },
    EndBatch { count: usize, decrement: bool },
    Protect(usize, bool),
    Kill(usize),
    Interrupt(usize),
    Unhealthy(usize),
    Standby(usize, bool),
    ExitStandby(usize),
    Detach(usize, bool),
    Hook { launching: bool, on: bool },
    Complete { index: usize, hook: bool, go_on: bool },
    Heartbeat(usize),
    Suspend(usize, bool),
    NewVersion,
    Capacity(Option<usize>),
    Delete(bool),
    Create(usize),
    Wait(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let index = 0..8_usize;
    prop_oneof![
        4 => (0..12_i64).prop_map(Step::SetDesired),
        1 => (0..4_i64, 3..12_i64).prop_map(|(min, max)| Step::Bounds(min, max)),
        3 => (index.clone(), any::<bool>(), any::<bool>()).prop_map(|(index, decrement, twice)| Step::End { index, decrement, twice }),
        1 => (1..5_usize, any::<bool>()).prop_map(|(count, decrement)| Step::EndBatch { count, decrement }),
        1 => (index.clone(), any::<bool>()).prop_map(|(index, on)| Step::Protect(index, on)),
        2 => index.clone().prop_map(Step::Kill),
        1 => index.clone().prop_map(Step::Interrupt),
        1 => index.clone().prop_map(Step::Unhealthy),
        1 => (index.clone(), any::<bool>()).prop_map(|(index, decrement)| Step::Standby(index, decrement)),
        1 => index.clone().prop_map(Step::ExitStandby),
        1 => (index.clone(), any::<bool>()).prop_map(|(index, decrement)| Step::Detach(index, decrement)),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(launching, on)| Step::Hook { launching, on }),
        2 => (index.clone(), any::<bool>(), any::<bool>()).prop_map(|(index, hook, go_on)| Step::Complete { index, hook, go_on }),
        1 => index.clone().prop_map(Step::Heartbeat),
        1 => (0..4_usize, any::<bool>()).prop_map(|(process, on)| Step::Suspend(process, on)),
        1 => Just(Step::NewVersion),
        1 => proptest::option::of(0..4_usize).prop_map(Step::Capacity),
        1 => any::<bool>().prop_map(Step::Delete),
        1 => (0..6_usize).prop_map(Step::Create),
        8 => (0..200_i64).prop_map(Step::Wait),
    ]
}

const PROCESSES: [&str; 4] = ["Launch", "Terminate", "ReplaceUnhealthy", "HealthCheck"];

fn hook_name(launching: bool) -> &'static str {
    if launching { "join" } else { "drain" }
}

/// Carries a step out; refusals are fine, bugs of the simulator are not.
fn take(kit: &Kit, step: &Step) -> Result<Tree, ApiError> {
    let ids = kit.ids("pool");
    let pick = |index: usize| {
        ids.get(index % ids.len().max(1)).cloned().unwrap_or_else(|| "i-00000000000000000".to_owned())
    };
    let several = |index: usize| named("pool").with("InstanceIds", vec![pick(index)]);
    match step {
        Step::SetDesired(desired) => {
            kit.try_autoscaling("SetDesiredCapacity", named("pool").with("DesiredCapacity", *desired))
        }
        Step::Bounds(min, max) => kit.try_autoscaling(
            "UpdateAutoScalingGroup",
            named("pool").with("MinSize", *min).with("MaxSize", *max),
        ),
        Step::End { index, decrement, twice } => {
            let first = kit.end(&pick(*index), *decrement);
            if *twice { kit.end(&pick(*index), *decrement) } else { first }
        }
        Step::EndBatch { count, decrement } => {
            let batch: Vec<String> = ids.iter().take(*count).cloned().collect();
            let params =
                named("pool").with("InstanceIds", batch).with("ShouldDecrementDesiredCapacity", *decrement);
            kit.try_autoscaling("TerminateInstanceInAutoScalingGroup", params)
        }
        Step::Protect(index, on) => {
            kit.try_autoscaling("SetInstanceProtection", several(*index).with("ProtectedFromScaleIn", *on))
        }
        Step::Kill(index) => {
            kit.try_ec2("TerminateInstances", Tree::new().with("InstanceIds", vec![pick(*index)]))
        }
        Step::Interrupt(index) => {
            kit.simulator.interrupt(&kit.scope, &pick(*index));
            Ok(Tree::new())
        }
        Step::Unhealthy(index) => {
            let report = Tree::new().with("InstanceId", pick(*index)).with("HealthStatus", "Unhealthy");
            kit.try_autoscaling("SetInstanceHealth", report)
        }
        Step::Standby(index, decrement) => kit.try_autoscaling(
            "EnterStandby",
            several(*index).with("ShouldDecrementDesiredCapacity", *decrement),
        ),
        Step::ExitStandby(index) => kit.try_autoscaling("ExitStandby", several(*index)),
        Step::Detach(index, decrement) => kit.try_autoscaling(
            "DetachInstances",
            several(*index).with("ShouldDecrementDesiredCapacity", *decrement),
        ),
        Step::Hook { launching, on: true } => {
            let transition = if *launching { "LAUNCHING" } else { "TERMINATING" };
            let params = named("pool")
                .with("LifecycleHookName", hook_name(*launching))
                .with("LifecycleTransition", format!("autoscaling:EC2_INSTANCE_{transition}"))
                .with("HeartbeatTimeout", 60);
            kit.try_autoscaling("PutLifecycleHook", params)
        }
        Step::Hook { launching, on: false } => kit.try_autoscaling(
            "DeleteLifecycleHook",
            named("pool").with("LifecycleHookName", hook_name(*launching)),
        ),
        Step::Complete { index, hook, go_on } => {
            let params = named("pool")
                .with("LifecycleHookName", hook_name(*hook))
                .with("InstanceId", pick(*index))
                .with("LifecycleActionResult", if *go_on { "CONTINUE" } else { "ABANDON" });
            kit.try_autoscaling("CompleteLifecycleAction", params)
        }
        Step::Heartbeat(index) => {
            let params = named("pool").with("LifecycleHookName", "drain").with("InstanceId", pick(*index));
            kit.try_autoscaling("RecordLifecycleActionHeartbeat", params)
        }
        Step::Suspend(process, on) => {
            let action = if *on { "SuspendProcesses" } else { "ResumeProcesses" };
            kit.try_autoscaling(action, named("pool").with("ScalingProcesses", vec![PROCESSES[*process]]))
        }
        Step::NewVersion => {
            let params = Tree::new()
                .with("LaunchTemplateName", "nodes")
                .with("LaunchTemplateData", crate::kit::data());
            kit.ec2("CreateLaunchTemplateVersion", params);
            let latest = nodes().with("Version", "$Latest");
            kit.try_autoscaling("UpdateAutoScalingGroup", named("pool").with("LaunchTemplate", latest))
        }
        Step::Capacity(limit) => {
            kit.simulator.set_capacity(&kit.scope, "*", "*", *limit);
            Ok(Tree::new())
        }
        Step::Delete(force) => {
            kit.try_autoscaling("DeleteAutoScalingGroup", named("pool").with("ForceDelete", *force))
        }
        Step::Create(size) => kit.try_autoscaling("CreateAutoScalingGroup", group("pool", *size)),
        Step::Wait(seconds) => {
            kit.simulator.advance(Duration::seconds(*seconds));
            Ok(Tree::new())
        }
    }
}

fn check(kit: &Kit) -> Result<(), TestCaseError> {
    for dump in kit.simulator.dump(None) {
        for group in &dump.groups {
            prop_assert!(group.min <= group.desired && group.desired <= group.max, "{group:?}");
            for id in &group.instances {
                let own = dump.instances.iter().find(|one| one.id == *id);
                prop_assert_eq!(own.and_then(|one| one.group.as_deref()), Some(group.name.as_str()));
            }
        }
        for instance in &dump.instances {
            if let Some(name) = &instance.group {
                let group = dump.groups.iter().find(|group| group.name == *name);
                prop_assert!(
                    group.is_some_and(|group| group.instances.contains(&instance.id)),
                    "{instance:?}"
                );
            }
        }
    }
    Ok(())
}

/// Launches never bring a group above the largest capacity it was ever allowed.
fn never_above(kit: &Kit, limit: usize) -> Result<(), TestCaseError> {
    let counting = kit
        .states("pool")
        .iter()
        .filter(|state| state.starts_with("Pending") || *state == "InService")
        .count();
    prop_assert!(counting <= limit, "{counting} instances count, {limit} are allowed");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_calls_break_no_invariant(steps in proptest::collection::vec(step(), 1..60)) {
        let kit = Kit::with_template();
        kit.autoscaling("CreateAutoScalingGroup", group("pool", 3));
        // 11 is the largest MaxSize that a step sets, 10 that of creation; balancing zones may add one.
        for step in &steps {
            if let Err(error) = take(&kit, step) {
                prop_assert!(error.status == 400, "{step:?}: {error}");
                prop_assert!(error.code != "SimulatorUnsupported" && error.code != "UnknownParameter", "{step:?}: {error}");
            }
            check(&kit)?;
            never_above(&kit, 12)?;
        }
        // Whatever happened, a forced deletion leaves nothing behind but what was detached.
        let detached: usize = steps.iter().filter(|step| matches!(step, Step::Detach(..))).count();
        let _ = kit.try_autoscaling("DeleteAutoScalingGroup", named("pool").with("ForceDelete", true));
        kit.simulator.advance(Duration::seconds(600));
        prop_assert!(kit.describe("pool").is_none());
        let alive = kit.machines().iter().filter(|one| one.at("State.Name").and_then(Tree::text) == Some("running")).count();
        prop_assert!(alive <= detached, "{alive} machines are left");
    }

    #[test]
    fn an_undisturbed_group_reaches_desired_capacity(steps in proptest::collection::vec(step(), 1..40)) {
        let kit = Kit::with_template();
        kit.autoscaling("CreateAutoScalingGroup", group("pool", 3));
        for step in &steps {
            let _ = take(&kit, step);
        }
        kit.simulator.set_capacity(&kit.scope, "*", "*", None);
        if kit.describe("pool").is_none_or(|group| group.text_of("Status").is_some()) {
            return Ok(());
        }
        for hook in ["join", "drain"] {
            let _ = kit.try_autoscaling("DeleteLifecycleHook", named("pool").with("LifecycleHookName", hook));
        }
        let _ = kit.try_autoscaling("ResumeProcesses", named("pool"));
        kit.simulator.advance(Duration::seconds(1_800));
        let shown = kit.describe("pool");
        let shown = shown.as_ref();
        let desired = shown.and_then(|group| group.number_of("DesiredCapacity")).unwrap_or_default();
        let serving = kit.states("pool").iter().filter(|state| *state == "InService").count();
        let protected = kit.instances("pool").iter().any(|one| one.flag_of("ProtectedFromScaleIn") == Some(true));
        let serving = i64::try_from(serving).unwrap_or(i64::MAX);
        // Protection may keep more than desired; nothing may keep fewer.
        prop_assert!(serving == desired || protected && serving > desired, "{serving} serve, {desired} are desired");
    }
}
