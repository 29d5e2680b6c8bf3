//! Durations that several decisions share.

use chrono::TimeDelta;

/// A termination is not requested again within this time: after a lost answer, desired capacity must not be decremented
/// twice.
pub const TERMINATION_REPEAT: TimeDelta = TimeDelta::seconds(60);
/// An instance that no view lists for this long is not in its group; whether it runs is read this often.
pub const MISSING_FOR: TimeDelta = TimeDelta::seconds(60);
/// A desired state is rolled out once it has been the same for this long: the topology controller writes pool,
/// bootstrap config and `MachinePool` one after another, which is one rollout.
pub const STABLE: TimeDelta = TimeDelta::seconds(10);
/// For this long the surge of a rollout in progress is kept until a version of the next desired state exists.
pub const HOLD: TimeDelta = TimeDelta::seconds(60);
/// A listing may not show a group that was created recently, or its tags: only a group that has been absent or without
/// an owner for this long counts as such.
pub const LISTING_LAG: TimeDelta = TimeDelta::seconds(15);
