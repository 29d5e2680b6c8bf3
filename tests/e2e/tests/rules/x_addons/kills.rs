//! X7, X10: the manager, Helm, or both are killed at random moments of an installation, an upgrade or an uninstallation. Children
//! end with their parent, one Helm at a time works on a release, and the release becomes what is requested, with all revisions.
//!
//! A moment is a share of what the operation takes from the first process of Helm to the end of the last one, as measured before.
//! The seed of the random numbers is printed; [`SEED`] repeats a run.

mod helms;
mod lane;
mod lease;
mod release;

use std::{
    fmt,
    io::Write as _,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use capasg_e2e::{Random, SEED, Setup, rule, seed};
use capasg_test_objects::is_long;
use futures::future::try_join_all;

use self::lane::Lane;

/// The shares of the short form.
const SHORT: usize = 2;

/// How often each victim is killed in each operation, in the long form.
const MOMENTS: usize = 30;

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Manager,
    Helm,
    Both,
}

/// What is in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Install,
    Upgrade,
    Uninstall,
}

const OPERATIONS: [Operation; 3] = [Operation::Install, Operation::Upgrade, Operation::Uninstall];

impl fmt::Display for Victim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Manager => "manager",
            Self::Helm => "helm",
            Self::Both => "both",
        })
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Install => "install",
            Self::Upgrade => "upgrade",
            Self::Uninstall => "uninstall",
        })
    }
}

/// A victim that was killed.
#[derive(Debug)]
struct Death {
    operation: Operation,
    /// What Helm was called for, or that it was not.
    during: String,
    /// Until no child of a manager that was killed ran any longer.
    orphaned: Duration,
    /// Until the release was as requested.
    converged: Duration,
}

/// A victim, and the operations in which it is killed.
type Share = (Victim, &'static [Operation]);

/// After the death of Helm alone, its manager tries again after a delay: so each operation has a release of its own then.
const SHARES: [Share; 5] = [
    (Victim::Both, &OPERATIONS),
    (Victim::Helm, &[Operation::Upgrade]),
    (Victim::Manager, &OPERATIONS),
    (Victim::Helm, &[Operation::Install]),
    (Victim::Helm, &[Operation::Uninstall]),
];

// Rules: X4, X5, X7, X10
#[tokio::test]
async fn a_kill_leaves_no_helm_behind_and_loses_no_revision() -> Result<()> {
    let (seed, begun) = (seed()?, Instant::now());
    let (moments, shares) = if is_long() { (MOMENTS, SHARES.len()) } else { (1, SHORT) };
    writeln!(std::io::stderr(), "x-kills: {moments} moments each ({SEED}={seed})")?;
    let lanes = SHARES
        .iter()
        .take(shares)
        .zip(seed..)
        .map(|(share, seed)| through(share, moments, Random::new(seed)));
    let deaths = try_join_all(lanes).await?.into_iter().sum::<usize>();
    writeln!(std::io::stderr(), "x-kills: {deaths} deaths in {:.0?}", begun.elapsed())?;
    Ok(())
}

/// Lives through the deaths of one victim, and answers how many there were.
async fn through(share: &Share, moments: usize, random: Random) -> Result<usize> {
    let (victim, operations) = *share;
    let mut count = 0;
    Box::pin(rule(&format!("x-kills-{victim}"), Setup::default().without_manager(), async |rig| {
        let mut lane = Lane::start(rig, victim, random).await?;
        let deaths = lane.live(operations, moments).await?;
        for operation in operations {
            let of = deaths.iter().filter(|death| death.operation == *operation).collect::<Vec<_>>();
            print(victim, *operation, &of)?;
            ensure!(of.len() >= moments, "{victim} in {operation}: {} deaths", of.len());
        }
        count = deaths.len();
        lane.end().await
    }))
    .await?;
    Ok(count)
}

fn print(victim: Victim, operation: Operation, deaths: &[&Death]) -> Result<()> {
    let longest = |part: fn(&Death) -> Duration| deaths.iter().map(|death| part(death)).max();
    let mut during: Vec<&str> = deaths.iter().map(|death| death.during.as_str()).collect();
    during.sort_unstable();
    let during = during.chunk_by(|a, b| a == b).map(|calls| format!("{} in {}", calls.len(), calls[0]));
    let during = during.collect::<Vec<_>>().join(", ");
    writeln!(
        std::io::stderr(),
        "x-kills: {victim} in {operation}: {} deaths ({during}), no child after {:.0?}, as requested after {:.1?} at most",
        deaths.len(),
        longest(|death| death.orphaned).unwrap_or_default(),
        longest(|death| death.converged).unwrap_or_default(),
    )?;
    Ok(())
}
