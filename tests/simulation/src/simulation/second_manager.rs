//! Makes of a seed a story of moves: a pool goes there and back between two management clusters whose managers both run,
//! and changes before, during and after each move.

use capasg_api::ASGMachinePoolSpec;

use super::{
    act::{Act, Rejection, SpecEdit},
    generate_acts::image_edit,
    interruptions,
    placement::gap,
    spec::{self, IMAGES},
};
use crate::{Kind, Pair, Random, Setup, pool_spec};

/// A story of moves, as its seed makes it.
#[derive(Debug, Clone)]
pub struct Moves {
    /// The seed.
    pub seed: u64,
    /// The first management cluster.
    pub first: Setup,
    /// The second one.
    pub second: Setup,
    /// The pool.
    pub spec: ASGMachinePoolSpec,
    /// Its first replicas.
    pub replicas: i32,
    /// How long drains take, in seconds.
    pub drain_seconds: i64,
    /// The moves, each in the other direction than the one before.
    pub moves: Vec<OneMove>,
    /// What happens after the last move.
    pub last: Vec<(i64, Act)>,
    /// Whether the `MachinePool` is deleted in the end.
    pub deleted: bool,
}

/// A move, and what happens before it and during it.
#[derive(Debug, Clone)]
pub struct OneMove {
    /// What happens where the pool is, each after so many milliseconds.
    pub acts: Vec<(i64, Act)>,
    /// Whether the pool converges before the move, so that the move changes nothing.
    pub settles: bool,
    /// clusterctl looks for `block-move` just before it is set.
    pub looks_too_early: bool,
    /// What happens between pause and unpause, before which step of clusterctl.
    pub meanwhile: Vec<(usize, Meanwhile)>,
}

/// What happens while the pool is paused.
#[derive(Debug, Clone, PartialEq)]
pub enum Meanwhile {
    /// AWS or another actor changes something.
    Act(Act),
    /// The manager of the target restarts.
    TargetRestarts,
    /// The manager of the source restarts.
    SourceRestarts,
}

/// The read that tells which content a launch template version has.
pub(super) const READ_VERSIONS: &str = "DescribeLaunchTemplateVersions";

impl Moves {
    /// The story of a seed, with interruptions or without.
    #[must_use]
    pub fn with(seed: u64, are_interrupted: bool) -> Self {
        let mut story = Self::of(seed);
        if are_interrupted {
            story.interrupt();
        }
        story
    }

    /// Calls of both managers take time, and watches of the one that has the pool break.
    fn interrupt(&mut self) {
        let random = Random::new(self.seed ^ 0x0069_6e74_6572);
        for setup in [&mut self.first, &mut self.second] {
            setup.latency = Some(interruptions::latency(&random, &[2_000, 8_000]));
        }
        for one in &mut self.moves {
            if random.chance(30) {
                let at = random.index(one.acts.len() + 1);
                one.acts.insert(at, (gap(&random), Act::ListAgain(random.index(Kind::ALL.len()))));
            }
        }
    }

    /// The story of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let random = Random::new(seed ^ 0x6d6f_7665_7300_0000);
        let replicas = i32::try_from(1 + random.below(5)).unwrap_or(1);
        let mut spec = pool_spec();
        match random.below(100) {
            0..15 => spec::apply(&mut spec, &SpecEdit::OnDelete),
            15..70 => spec::apply(&mut spec, &spec::rolling(&random, replicas)),
            _ => {}
        }
        if random.chance(20) {
            spec::apply(&mut spec, &spec::max_disrupted(&random, replicas));
        }
        let setup = |seed| Setup {
            lag_millis: [0, 20, 20, 300, 1_500][random.index(5)],
            meanwhile_percent: random.below(40),
            ..Setup::seed(seed)
        };
        let (first, second) = (setup(seed), setup(seed ^ 0x7365_636f_6e64));
        let drain_seconds = [1, 5, 10, 20, 45][random.index(5)];
        let count = 2 + random.index(3);
        let mut moves: Vec<OneMove> = (0..count).map(|_| OneMove::draw(&random)).collect();
        let mut last = changes(&random);
        for at in 0..count {
            if random.chance(25) {
                let rejection = if random.chance(50) { Rejection::Denied } else { Rejection::Internal };
                moves[at].acts.push((gap(&random), Act::Outage(READ_VERSIONS, rejection)));
                let after = moves.get_mut(at + 1).map_or(&mut last, |next| &mut next.acts);
                after.insert(0, (gap(&random), Act::OutageEnds(READ_VERSIONS, rejection)));
            }
        }
        Self { seed, first, second, spec, replicas, drain_seconds, moves, last, deleted: random.chance(40) }
    }
}

impl OneMove {
    fn draw(random: &Random) -> Self {
        let mut meanwhile: Vec<(usize, Meanwhile)> = Vec::new();
        if random.chance(40) {
            for _ in 0..=random.below(2) {
                meanwhile.push((random.index(Pair::STEPS), Meanwhile::draw(random)));
            }
        }
        Self {
            acts: changes(random),
            settles: random.chance(30),
            looks_too_early: random.chance(20),
            meanwhile,
        }
    }

    /// Whether template versions cannot be read while the pool is moved.
    pub(super) fn is_unread(&self) -> bool {
        self.acts.iter().any(|(_, act)| matches!(act, Act::Outage(..)))
    }
}

impl Meanwhile {
    fn draw(random: &Random) -> Self {
        Self::Act(match random.below(7) {
            0 => return Self::TargetRestarts,
            1 => return Self::SourceRestarts,
            2 => Act::HookGone,
            3 => Act::TagsGone,
            4 => by_others(random),
            _ => Act::Kill(random.next()),
        })
    }
}

/// What happens to a pool between two moves.
fn changes(random: &Random) -> Vec<(i64, Act)> {
    let mut acts = Vec::new();
    for _ in 0..random.below(5) {
        let which = random.next();
        let act = match random.below(100) {
            0..22 => image_edit(random),
            22..30 => Act::Spec(SpecEdit::Volume([30, 40, 50][random.index(3)])),
            30..44 => Act::Scale(i32::try_from(1 + random.below(5)).unwrap_or(1)),
            44..54 => Act::Token,
            54..62 => Act::Kill(which),
            62..70 => Act::DeleteMachine(which),
            70..74 => Act::Replace(which),
            74..80 => Act::Restart,
            80..84 => {
                acts.push((gap(random), Act::BoundsByOthers(0, 9)));
                Act::DesiredByOthers(1)
            }
            84..88 => Act::HookGone,
            88..92 => Act::TagsGone,
            92..98 => by_others(random),
            _ => Act::Unprotect(which),
        };
        acts.push((gap(random), act));
    }
    acts
}

/// Another actor has the group launch from another version.
fn by_others(random: &Random) -> Act {
    if random.chance(30) {
        Act::LaunchByOthers(random.next())
    } else {
        Act::VersionByOthers(IMAGES[random.index(IMAGES.len())])
    }
}
