//! Lives through a story of moves. After each move and at every step: a pool that is paused is left alone, what was
//! settled stays as it is, and no instance counts as up to date before its launch template version was read.

use anyhow::{Context, Result, bail, ensure};
use capasg_api::{conditions, conditions::UP_TO_DATE};
use capasg_fake_aws::{InstanceDump, LogEntry, Outcome as Answer};
use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt;

use super::{
    act::{Act, SpecEdit},
    calm::{bring_back, calm},
    live::{LOOK, lacks, launched, stopped},
    outcome::Outcome,
    perform::perform,
    second_manager::{Meanwhile, Moves, OneMove, READ_VERSIONS},
    spec,
};
use crate::{Moved, Pair, Pool, Trace, World, cloud::MANAGER};

/// What AWS launched is listed and reported within this time.
const LISTED: TimeDelta = TimeDelta::minutes(2);
/// How long nothing is changed after the move of a settled pool.
const STAYS: TimeDelta = TimeDelta::minutes(4);
/// A template version for an edit or a token is made within this time.
const MADE: TimeDelta = TimeDelta::minutes(3);
/// Rejected calls are tried again within this time, and the edits of others are corrected.
const TRIED: TimeDelta = TimeDelta::minutes(16);

/// What a report of the pool is measured by.
struct Rules {
    pool: Pool,
    /// The cloud's last call when the pool was unpaused where it is.
    unpaused: u64,
    /// Whether its manager read template versions since.
    has_read: bool,
    /// What was looked at last, and when.
    seen: Option<(String, DateTime<Utc>)>,
    /// From when on a template version has no reason but a move.
    quiet_from: DateTime<Utc>,
}

/// Lives through a story of moves.
pub(super) async fn live(story: &Moves) -> Outcome {
    let mut source = World::new(story.first.clone());
    source.set_drain_seconds(story.drain_seconds);
    let target = World::beside(&mut source, story.second.clone());
    target.set_drain_seconds(story.drain_seconds);
    let mut pair = Pair { source, target, looks_too_early: false };
    let lived = chapters(story, &mut pair).await;
    let told =
        |error: anyhow::Error| format!("{error:#}\n{story:#?}\nwhere it is: {}", pair.source.describe());
    Outcome {
        seed: story.seed,
        violation: lived.err().map(told),
        trace: Trace::default(),
        calls: pair.source.journal.calls() + pair.target.journal.calls(),
        seconds: i64::try_from(pair.source.clock.elapsed().as_secs()).unwrap_or(i64::MAX),
    }
}

/// The pool is always in the source of the pair, which is swapped after each move.
async fn chapters(story: &Moves, pair: &mut Pair) -> Result<()> {
    let pool = pair.source.add_pool_with("workers", story.replicas, |spec| spec.clone_from(&story.spec));
    let mut rules = Rules {
        pool: pool.clone(),
        unpaused: 0,
        // The first manager made the first version.
        has_read: true,
        seen: None,
        quiet_from: pair.source.now() + MADE,
    };
    let replicas = usize::try_from(story.replicas)?;
    let begun = |pair: &Pair| pair.source.is_running(&pool, replicas);
    pair.run_until("it runs", TimeDelta::minutes(15), begun).await?;
    for (number, one) in (1..).zip(&story.moves) {
        changed(pair, &mut rules, one).await.with_context(|| format!("move {number}"))?;
    }
    happen(pair, &mut rules, &story.last).await?;
    calm(&mut pair.source, &pool);
    pair.source.edit_pool(&pool, |own| {
        if own.spec.rollout(0).type_ == capasg_api::pool::RolloutType::OnDelete {
            spec::apply(&mut own.spec, &SpecEdit::Rolling(1, 0));
        }
    });
    converge(pair, &mut rules).await?;
    ensure!(
        pair.source.says(&pool, UP_TO_DATE, "True", "UpToDate"),
        "converges: UpToDate is not True: {:?}",
        pair.source.condition(&pool, UP_TO_DATE)
    );
    ensure!(pair.target.is_let_go(&pool), "left on the other cluster: {}", pair.target.describe());
    if story.deleted {
        pair.source.delete_machine_pool(&pool);
        let is_gone = |pair: &Pair| pair.source.is_gone(&pool);
        pair.run_until("nothing_is_orphaned: everything is gone", TimeDelta::minutes(60), is_gone).await?;
        let left = pair.source.simulator.leftovers(None);
        ensure!(left.is_empty(), "nothing_is_orphaned: left in the cloud: {left:?}");
    }
    pair.source.finish()?;
    pair.target.finish()
}

/// What happens before a move, the move, and what it must not bring about.
async fn changed(pair: &mut Pair, rules: &mut Rules, one: &OneMove) -> Result<()> {
    let pool = rules.pool.clone();
    // Reads that fail let nothing converge.
    let (before, outage): (Vec<_>, Vec<_>) =
        one.acts.iter().cloned().partition(|(_, act)| !matches!(act, Act::Outage(..)));
    happen(pair, rules, &before).await?;
    if one.settles {
        converge(pair, rules).await?;
        run(pair, rules, STAYS).await?;
    }
    happen(pair, rules, &outage).await?;
    pair.looks_too_early = one.looks_too_early;
    let shown = pair.source.cache_lag() + TimeDelta::seconds(1);
    let mut others = Vec::new();
    let moved = pair
        .move_with(&pool, |pair, step| {
            for (_, what) in one.meanwhile.iter().filter(|(at, _)| *at == step) {
                match what {
                    Meanwhile::TargetRestarts => pair.target.kill_process(),
                    Meanwhile::SourceRestarts => pair.source.kill_process(),
                    Meanwhile::Act(act) => {
                        perform(&mut pair.source, &pool, act);
                        others.push(act.clone());
                    }
                }
            }
        })
        .await?;
    std::mem::swap(&mut pair.source, &mut pair.target);
    let Moved { paused, paused_at, unpaused } = moved;
    let during = ours(pair, paused).into_iter().filter(|call| call.sequence <= unpaused);
    // A reconcile that runs when the caches show the pause may still end, and what a process sent that died arrives; nothing is
    // sent later.
    let shown = paused_at + shown;
    let under_way = pair.target.last_reconciles.iter().filter(|(began, _)| *began < shown);
    let ended =
        under_way.map(|(_, ended)| *ended).max().unwrap_or(shown).max(shown + pair.target.longest_call());
    let late = during.filter(|call| call.time >= ended).map(|call| call.action);
    let late: Vec<String> = late.collect();
    ensure!(late.is_empty(), "a_paused_pool_is_left_alone: {late:?}");
    let is_pending = rules.quiet_from > paused_at;
    (rules.unpaused, rules.has_read, rules.seen) = (unpaused, false, None);
    for act in &others {
        rules.note(act, pair.source.now());
    }
    if one.settles && others.is_empty() && !one.is_unread() {
        run(pair, rules, STAYS).await?;
        let made: Vec<String> = ours(pair, paused).into_iter().map(|call| call.action).collect();
        ensure!(made.is_empty(), "a_move_changes_nothing: {made:?}");
    } else if !is_pending && others.is_empty() {
        run(pair, rules, TimeDelta::seconds(40)).await?;
        let made = ours(pair, paused).into_iter().any(|call| call.action == "CreateLaunchTemplateVersion");
        ensure!(!made, "a_move_makes_no_version");
    }
    Ok(())
}

async fn happen(pair: &mut Pair, rules: &mut Rules, acts: &[(i64, Act)]) -> Result<()> {
    for (pause, act) in acts {
        run(pair, rules, TimeDelta::milliseconds(*pause)).await?;
        let pool = rules.pool.clone();
        perform(&mut pair.source, &pool, act);
        rules.note(act, pair.source.now());
    }
    Ok(())
}

/// Runs both for a while, and looks at each report.
async fn run(pair: &mut Pair, rules: &mut Rules, span: TimeDelta) -> Result<()> {
    let end = pair.source.now() + span;
    let mut broken = None;
    pair.run_until("the end of the span", span + TimeDelta::seconds(1), |pair| {
        broken = rules.broken(&pair.source);
        broken.is_some() || pair.source.now() >= end
    })
    .await?;
    broken.map_or(Ok(()), |what| bail!("{what}"))
}

/// The pool becomes what it is to be where it is.
async fn converge(pair: &mut Pair, rules: &mut Rules) -> Result<()> {
    let pool = rules.pool.clone();
    let deadline = pair.source.now() + TimeDelta::minutes(100);
    // What was edited last has not been looked at yet.
    run(pair, rules, TimeDelta::seconds(75)).await?;
    let mut patience = 3;
    while let Some(lacks) = lacks(&pair.source, &pool) {
        bring_back(&mut pair.source, &pool);
        // Versions of another actor stop a rollout until a user lets it go on.
        if patience > 0 && stopped(&pair.source, &pool) {
            patience -= 1;
            pair.source.let_go_on(&pool);
        }
        ensure!(pair.source.now() < deadline, "converges: {lacks}");
        run(pair, rules, LOOK).await?;
    }
    Ok(())
}

/// What the managers asked of AWS that changes something.
fn ours(pair: &Pair, since: u64) -> Vec<LogEntry> {
    let calls = pair.source.mutations_since(since).into_iter();
    calls.filter(|call| call.access_key.as_deref() == Some(MANAGER)).collect()
}

impl Rules {
    /// Something happens that is a reason for a template version.
    fn note(&mut self, act: &Act, now: DateTime<Utc>) {
        let lasts = match act {
            Act::Spec(_) | Act::Token => MADE,
            Act::Outage(..) | Act::OutageEnds(..) | Act::LaunchByOthers(_) | Act::VersionByOthers(_) => TRIED,
            _ => return,
        };
        self.quiet_from = self.quiet_from.max(now + lasts);
    }

    /// What is wrong with what the manager reports where the pool is.
    ///
    /// An instance of another image than the spec's is outdated whatever its version is called. What AWS launched two
    /// minutes ago or later need not be observed yet.
    fn broken(&mut self, world: &World) -> Option<String> {
        let (now, object) = (world.now(), world.pool(&self.pool)?);
        let version = object.resource_version()?;
        let is_same = |(before, at): &(String, DateTime<Utc>)| *before == version && now - *at < LOOK;
        if world.is_paused() || self.seen.as_ref().is_some_and(is_same) {
            return None;
        }
        self.seen = Some((version, now));
        let (status, generation) = (object.status.as_ref()?, object.metadata.generation?);
        if object.metadata.deletion_timestamp.is_some() || status.observed_generation != generation {
            return None;
        }
        let wanted = object.spec.machine.image.id.as_ref()?;
        let is_outdated = |one: &InstanceDump| {
            one.image != *wanted
                && one.lifecycle_state.as_deref() == Some("InService")
                && launched(one).is_some_and(|at| now - at > LISTED)
        };
        let instances = world.instances(&self.pool).into_iter();
        let outdated: Vec<String> = instances.filter(is_outdated).map(|one| one.id).collect();
        let condition = conditions::get(&status.conditions, UP_TO_DATE)
            .filter(|found| found.status == "True" && found.observed_generation == Some(generation));
        if condition.is_some() && !outdated.is_empty() {
            return Some(format!("what_is_outdated_is_not_up_to_date: UpToDate is True, {outdated:?}"));
        }
        let told = usize::try_from(status.up_to_date_replicas).unwrap_or(0);
        // Nothing is counted before the group was read.
        if told > 0 && told + outdated.len() > usize::try_from(status.replicas).unwrap_or(0) {
            let all = status.replicas;
            return Some(format!("what_is_outdated_is_not_counted: {told} of {all} with {outdated:?}"));
        }
        if condition.is_none() && told == 0 {
            return None;
        }
        self.has_read = self.has_read(world);
        (!self.has_read)
            .then(|| "what_is_up_to_date_was_read: no template version was read since the move".to_owned())
    }

    /// Whether template versions were read where the pool is, since it is there.
    fn has_read(&self, world: &World) -> bool {
        self.has_read
            || world
                .calls_since(self.unpaused, Some(READ_VERSIONS))
                .iter()
                .any(|call| call.outcome == Answer::Ok && call.access_key.as_deref() == Some(MANAGER))
    }
}
