//! The phases of a plan: the order in which steps are carried out, and which phases depend on which.

/// A phase of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Adds our finalizer and the owner id, before anything is created in AWS (C6, C8).
    Claim,
    /// Records that resources may exist in AWS, before the first call that creates or changes one (E3).
    CreationRecord,
    /// Blocks `clusterctl move` by an annotation while a termination is in flight (F5).
    BlockMove,
    /// Creates the ASGMachines of new instances (D2).
    AsgMachines,
    /// Records on the pool that a rollout stopped, or removes the record.
    RolloutRecord,
    /// A pool is being deleted: stops launches and instance refreshes.
    StopLaunches,
    /// A pool is being deleted: deletes its Machines, so that core drains their Nodes.
    Drains,
    /// Deletes the Machines of instances that EC2 reclaims or has terminated.
    Interruptions,
    /// Terminates the instances whose Nodes are drained (D10).
    Terminations,
    /// Deletes the Machines of instances that AWS terminates, and answers our hook, which holds them until they are
    /// drained.
    LifecycleActions,
    /// Deletes the Machines of instances that left the group, and releases the ASGMachines of those that are
    /// terminated.
    Departures,
    /// Copies the MachinePool's timeouts for deletions to its Machines (D14).
    MachineTimeouts,
    /// Creates the launch template, or the version that the group is to launch.
    LaunchSource,
    /// Creates the group, or adopts one.
    Group,
    /// Sets what the group launches: launch template version, types, purchase options.
    LaunchPin,
    /// Corrects the group's other settings.
    Settings,
    /// Cancels an instance refresh, or rolls it back.
    RefreshEnd,
    /// Sets bounds, lowers desired capacity, or sets the MachinePool's replicas to what the group has (G1, G2).
    Capacity,
    /// Raises desired capacity (G1).
    ScaleOut,
    /// Chooses the victims of a scale-in, and deletes their Machines (D7, D8).
    ScaleIn,
    /// Replaces unhealthy and outdated instances: deletes their Machines, or starts an instance refresh.
    Replacements,
    /// Corrects what the group has in addition to its settings: tags, suspended processes, scale-in protection, our
    /// hook.
    Attachments,
    /// A pool is being deleted: deletes our hook, the group and the launch template.
    Removal,
    /// Deletes launch template versions that nothing uses, and unblocks `clusterctl move`.
    CleanUp,
    /// Removes our finalizer, once nothing of the pool is left in AWS.
    Release,
}

impl Phase {
    /// All phases, in the order in which they are carried out.
    pub const ORDER: [Self; 25] = [
        Self::Claim,
        Self::CreationRecord,
        Self::BlockMove,
        Self::AsgMachines,
        Self::RolloutRecord,
        Self::StopLaunches,
        Self::Drains,
        Self::Interruptions,
        Self::Terminations,
        Self::LifecycleActions,
        Self::Departures,
        Self::MachineTimeouts,
        Self::LaunchSource,
        Self::Group,
        Self::LaunchPin,
        Self::Settings,
        Self::RefreshEnd,
        Self::Capacity,
        Self::ScaleOut,
        Self::ScaleIn,
        Self::Replacements,
        Self::Attachments,
        Self::Removal,
        Self::CleanUp,
        Self::Release,
    ];

    /// Its position in the order.
    pub(super) fn position(self) -> usize {
        Self::ORDER.iter().position(|phase| *phase == self).unwrap_or(Self::ORDER.len())
    }

    /// The phases that this one depends on: it is not carried out if a call to AWS of one of them fails, or of those
    /// that they depend on. A call that AWS rejects holds up nothing else: plans take rejections into account.
    #[must_use]
    pub const fn depends_on(self) -> &'static [Self] {
        match self {
            Self::Claim
            | Self::CreationRecord
            | Self::BlockMove
            | Self::AsgMachines
            | Self::RolloutRecord
            | Self::StopLaunches
            | Self::Drains
            | Self::Interruptions
            | Self::LifecycleActions
            | Self::Departures
            | Self::MachineTimeouts
            | Self::Settings
            | Self::RefreshEnd
            | Self::Attachments => &[],
            // A pool whose record says that nothing was created is deleted without AWS. Every pool creates its launch
            // template first.
            Self::LaunchSource => &[Self::CreationRecord],
            // Terminations remove the surge of a stopped rollout. Instances that a deletion terminates must not be
            // launched again.
            Self::Terminations => &[Self::BlockMove, Self::RolloutRecord, Self::StopLaunches],
            Self::Group | Self::LaunchPin => &[Self::LaunchSource],
            // No instance refresh replaces more instances because of other bounds.
            Self::Capacity => &[Self::RolloutRecord, Self::RefreshEnd],
            // Instances are launched from the desired version.
            Self::ScaleOut => &[Self::RolloutRecord, Self::RefreshEnd, Self::LaunchPin],
            Self::ScaleIn => &[Self::Capacity],
            Self::Replacements => {
                &[Self::RolloutRecord, Self::LaunchPin, Self::Capacity, Self::ScaleOut, Self::ScaleIn]
            }
            Self::Removal => &[Self::StopLaunches, Self::Drains, Self::Terminations],
            // A version must not be deleted while the group is pinned to it, and a move waits for terminations.
            Self::CleanUp => &[Self::Terminations, Self::LaunchPin],
            Self::Release => &[Self::Removal],
        }
    }

    /// Whether it waits for a phase that could not be carried out. If no version of the launch template could be created
    /// for minutes (`no_new_version`), the group launches what it launched before.
    #[must_use]
    pub fn waits_for(self, halted: Self, no_new_version: bool) -> bool {
        let launches_as_before = no_new_version && (self, halted) == (Self::ScaleOut, Self::LaunchPin);
        self.depends_on().contains(&halted) && !launches_as_before
    }

    /// Whether what AWS announces of instances is acted on in it.
    #[must_use]
    pub const fn acts_on_notices(self) -> bool {
        matches!(
            self,
            Self::AsgMachines
                | Self::Drains
                | Self::Interruptions
                | Self::LifecycleActions
                | Self::Departures
                | Self::Terminations
        )
    }

    /// Whether each of its steps depends on the one before. The steps of other phases concern different objects,
    /// instances or attributes.
    #[must_use]
    pub const fn is_sequence(self) -> bool {
        matches!(
            self,
            Self::BlockMove | Self::RolloutRecord | Self::LaunchSource | Self::Group | Self::Removal
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_phase_comes_once_and_after_all_it_depends_on() {
        let mut done = HashSet::new();
        for phase in Phase::ORDER {
            for before in phase.depends_on() {
                assert!(done.contains(before), "{phase:?} depends on {before:?}, which comes later");
            }
            assert!(done.insert(phase), "{phase:?} comes twice");
        }
    }

    #[test]
    fn dependencies_of_phases_have_no_cycle() {
        fn all_below(phase: Phase, path: &mut Vec<Phase>) {
            assert!(!path.contains(&phase), "{path:?} leads back to {phase:?}");
            path.push(phase);
            for below in phase.depends_on() {
                all_below(*below, path);
            }
            path.pop();
        }
        for phase in Phase::ORDER {
            all_below(phase, &mut Vec::new());
        }
    }
}
