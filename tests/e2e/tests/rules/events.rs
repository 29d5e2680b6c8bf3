//! Events on the real parts: what a queue tells alone, what it makes quicker, and that nothing depends on it.

use std::io::Write as _;

use anyhow::{Context as _, Result, ensure};
use capasg_api::names::machine_name;
use capasg_e2e::{COMPLETE, END, Rig, Setup, ends_of, eventually, first_call, rule};
use capasg_environment::Look;
use capasg_fake_aws::{DEFAULT_ACCOUNT, LogEntry, Tree};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

/// What EC2 gives an interrupted Spot instance.
const WARNING: TimeDelta = TimeDelta::minutes(2);
/// What it is given here, where three managers begin one after another on two cores that others use: its drain has to be
/// over in [`WARNING`] all the same.
const UNTIL_THE_END: TimeDelta = TimeDelta::minutes(4);
/// How soon a change is to be seen with events.
const SOON: TimeDelta = TimeDelta::seconds(2);
/// The time between two polls without events, and what a busy machine adds.
const A_POLL: TimeDelta = TimeDelta::seconds(60 + 15);

/// When the deletion of a Machine was first asked for.
fn deletion_of(rig: &Rig<'_>, machine: &str) -> Result<Option<DateTime<Utc>>> {
    let writes = rig.writes()?.into_iter();
    let mut deletions = writes.filter(|write| {
        (write.verb.as_str(), write.resource.as_str(), write.name.as_str()) == ("delete", "machines", machine)
            // A client that is killed before the answer is written down as 504; the deletion takes effect all the same.
            && (write.code < 300 || write.code == 504)
    });
    Ok(deletions.next().map(|write| write.received))
}

/// The first call that gives the group more than this capacity.
fn grown_beyond(calls: &[LogEntry], size: u64) -> Option<DateTime<Utc>> {
    let desired = |call: &LogEntry| {
        let value = &call.params["DesiredCapacity"];
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    };
    calls.iter().find(|call| desired(call).is_some_and(|desired| desired > size))?.wall_time
}

// Pains: P17, P20, W18
#[tokio::test]
async fn an_interrupted_spot_instance_is_drained_through_kills() -> Result<()> {
    rule("events-spot", Setup::fed(), async |rig| {
        let warning = u64::try_from(UNTIL_THE_END.num_milliseconds())?;
        rig.set_times(|times| times.spot_warning_millis = warning);
        rig.listen().await?;
        let pool =
            rig.pool("workers").replicas(3).with("spec/instancesDistribution/onDemandPercentageAboveBaseCapacity", 0);
        rig.run(&pool, 3).await?;
        let service = rig.serve(6, Some(5)).await?;
        let taken = rig.instances()[0].clone();
        ensure!(taken.market == "spot", "{taken:?}");
        let machine = machine_name("workers", &taken.id);
        let (mark, before) = (rig.mark(), rig.instances());
        let warned = Utc::now();
        rig.through_kills("events-spot", 4, async {
            ensure!(rig.scenario.simulator().interrupt(&rig.scope(), &taken.id), "it was there");
            eventually("it is replaced", async || {
                let there = rig.instances().iter().any(|one| one.id == taken.id);
                Ok(Look::when(!there, "it runs"))
            })
            .await?;
            rig.running("workers", 3).await
        })
        .await?;
        let begun = deletion_of(rig, &machine)?.context("its Machine was never deleted")?;
        let calls = rig.mutations_since(mark);
        let ended = first_call(&rig.calls_of(END), &taken.id).context("its group found it gone")?;
        let grown = grown_beyond(&calls, 3).context("nothing was launched in its place")?;
        writeln!(
            std::io::stderr(),
            "events-spot: after the warning its drain began in {} ms, its replacement in {} ms, its end in {} ms",
            (begun - warned).num_milliseconds(),
            (grown - warned).num_milliseconds(),
            (ended - warned).num_milliseconds()
        )?;
        ensure!(begun < ended && ended - warned < UNTIL_THE_END, "drained from {begun} on, ended at {ended}");
        let evicted = service.evictions().await?.into_iter().filter(|write| write.code < 300);
        let last = evicted.map(|write| write.at).max().context("no pod was evicted")?;
        ensure!(last - warned < WARNING, "the last pod left at {last}");
        ensure!(grown < ended, "launched at {grown}, ended at {ended}: its replacement comes first");
        ensure!(service.was_drained(&taken.id, &taken.private_dns_name, END).await? >= 2);
        ensure!(service.fewest() >= 5, "only {} pods were ready", service.fewest());
        let ends = ends_of(&calls);
        ensure!(ends.len() == 1 && ends.get(&taken.id) == Some(&1), "{ends:?}");
        let new = rig.instances().iter().filter(|one| before.iter().all(|old| old.id != one.id)).count();
        ensure!(new == 1 && rig.group()?.desired == 3, "{new} new instances");
        rig.queue_is_empty().await?;
        service.end().await?;
        rig.delete("workers").await
    })
    .await
}

/// Somebody makes the group replace an instance; our hook holds it. Gives when that was.
fn somebody_replaces(rig: &Rig<'_>, id: &str) -> Result<DateTime<Utc>> {
    let at = Utc::now();
    let end = Tree::new().with("InstanceId", id).with("ShouldDecrementDesiredCapacity", false);
    rig.somebody_calls(END, end)?;
    Ok(at)
}

/// Waits until a change was seen and its Machine is going; gives how long the two took.
async fn seen_and_acted_on(
    rig: &Rig<'_>,
    id: &str,
    changed: DateTime<Utc>,
) -> Result<(TimeDelta, TimeDelta)> {
    let machine = machine_name("workers", id);
    let seen = eventually("the group is read", async || {
        Ok(rig.read_after(changed).map_or_else(|| Look::Not("nobody reads".to_owned()), Look::Done))
    })
    .await?;
    let acted = eventually("its Machine is deleted", async || {
        Ok(deletion_of(rig, &machine)?.map_or_else(|| Look::Not("it stays".to_owned()), Look::Done))
    })
    .await?;
    Ok((seen - changed, acted - changed))
}

// Pains: P20, W18
#[tokio::test]
async fn an_outside_change_is_observed_within_two_seconds_with_events() -> Result<()> {
    rule("events-seen", Setup::fed(), async |rig| {
        rig.listen().await?;
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        for round in 0..3 {
            // From here on the group is read every five minutes, unless an event comes.
            rig.stands_still().await?;
            let id = rig.instances()[0].id.clone();
            let changed = if round == 1 {
                let at = Utc::now();
                ensure!(rig.scenario.simulator().kill(&rig.scope(), &id), "it was there");
                at
            } else {
                somebody_replaces(rig, &id)?
            };
            let (seen, acted) = seen_and_acted_on(rig, &id, changed).await?;
            writeln!(
                std::io::stderr(),
                "events-seen: change {round} was seen after {} ms, its Machine deleted after {} ms",
                seen.num_milliseconds(),
                acted.num_milliseconds()
            )?;
            ensure!(seen <= SOON, "change {round} was seen after {seen}");
            rig.running("workers", 2).await?;
        }
        rig.queue_is_empty().await?;
        rig.delete("workers").await
    })
    .await
}

// Pains: P20, W18
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn a_lost_event_costs_only_the_delay_of_a_poll() -> Result<()> {
    rule("events-lost", Setup::fed(), async |rig| {
        rig.set_times(|times| times.event_lost_percent = 100);
        rig.listen().await?;
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        rig.stands_still().await?;
        let (mark, id) = (rig.mark(), rig.instances()[0].id.clone());
        let changed = somebody_replaces(rig, &id)?;
        let (seen, acted) = seen_and_acted_on(rig, &id, changed).await?;
        writeln!(
            std::io::stderr(),
            "events-lost: seen after {} s, its Machine deleted after {} s",
            seen.num_seconds(),
            acted.num_seconds()
        )?;
        ensure!(seen <= A_POLL, "seen after {seen}");
        rig.running("workers", 2).await?;
        ensure!(!rig.instances().iter().any(|one| one.id == id), "it was let go");
        ensure!(first_call(&rig.calls_of(COMPLETE), &id).is_some(), "our hook let it go");
        ensure!(ends_of(&rig.mutations_since(mark)).is_empty(), "we ended nothing");
        rig.delete("workers").await
    })
    .await
}

/// An event about an instance, as EventBridge sends it.
fn event(rig: &Rig<'_>, source: &str, kind: &str, detail: &Value) -> Value {
    json!({
        "version": "0", "id": "17793124-05d4-b198-2fde-7ededc63b103", "detail-type": kind, "source": source,
        "account": DEFAULT_ACCOUNT, "time": Utc::now(), "region": rig.scenario.region, "resources": [],
        "detail": detail,
    })
}

// Pains: W18
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn late_duplicate_reordered_and_false_events_change_nothing() -> Result<()> {
    rule("events-odd", Setup::fed(), async |rig| {
        rig.set_times(|times| {
            times.event_twice_percent = 100;
            times.event_jitter_millis = 8_000;
        });
        rig.listen().await?;
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        let (mark, before) = (rig.mark(), rig.instances());
        somebody_replaces(rig, &before[0].id)?;
        ensure!(rig.scenario.simulator().kill(&rig.scope(), &before[1].id), "it was there");
        eventually("both are replaced", async || {
            let left = rig.instances().iter().filter(|one| before.iter().any(|old| old.id == one.id)).count();
            Ok(Look::when(left == 0, format!("{left} run")))
        })
        .await?;
        rig.running("workers", 2).await?;
        rig.queue_is_empty().await?;
        // A drain may end before the group has noticed that its instance does not run: then it is terminated there.
        let terminated = ends_of(&rig.mutations_since(mark));
        ensure!(terminated.keys().all(|id| *id == before[1].id), "{terminated:?}");
        ensure!(rig.instances().len() == 2, "two were launched in their places");

        // What is told of instances that are well, or gone, is looked at and found to be otherwise.
        rig.stands_still().await?;
        let (mark, sent, group) = (rig.mark(), Utc::now(), rig.group()?.name);
        let (well, gone) = (rig.instances()[0].id.clone(), before[0].id.clone());
        for id in [&well, &gone, &well] {
            let of_group = json!({"AutoScalingGroupName": group, "EC2InstanceId": id});
            let of_machine = json!({"instance-id": id, "state": "terminated"});
            // None of them is a Spot instance.
            let warning = json!({"instance-id": id, "instance-action": "terminate"});
            for (source, kind, detail) in [
                ("aws.autoscaling", "EC2 Instance Terminate Successful", &of_group),
                ("aws.autoscaling", "EC2 Instance Launch Successful", &of_group),
                ("aws.ec2", "EC2 Instance State-change Notification", &of_machine),
                ("aws.ec2", "EC2 Spot Instance Interruption Warning", &warning),
            ] {
                rig.send(&event(rig, source, kind, detail))?;
            }
        }
        rig.queue_is_empty().await?;
        rig.stands_still().await?;
        ensure!(rig.read_after(sent).is_some(), "the group was looked at");
        let (calls, user) = (rig.mutations_since(mark), rig.user());
        ensure!(calls.iter().all(|call| call.action.ends_with("Message")), "{calls:?}");
        let written: Vec<_> = rig.writes()?.into_iter().filter(|one| one.user == user).collect();
        let late: Vec<_> = written.iter().filter(|one| one.received > sent).collect();
        ensure!(late.is_empty(), "{late:?}");
        rig.running("workers", 2).await?;
        rig.delete("workers").await
    })
    .await
}
