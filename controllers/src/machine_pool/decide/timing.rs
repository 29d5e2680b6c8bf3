//! Durations that several decisions share.

use chrono::TimeDelta;

/// A termination that was requested is not requested again before this passed: a lost reply must not shrink a pool twice.
pub const TERMINATION_REPEAT: TimeDelta = TimeDelta::seconds(60);
/// An instance that no list showed for this long has left its group; whether it runs is read this often.
pub const MISSING_FOR: TimeDelta = TimeDelta::seconds(60);
/// A desired state is rolled out once it has been the same for this long: `ClusterClass` writes pool, bootstrap config and
/// `MachinePool` one after another, and that is one rollout.
pub const STABLE: TimeDelta = TimeDelta::seconds(10);
/// For this long the surge of a rollout under way waits for the template version of the next desired state.
pub const HOLD: TimeDelta = TimeDelta::seconds(60);
/// A listing may be missing a group that was created seconds ago and is not recorded yet, and its tags: the group must have
/// been absent or without an owner for this long before anything is concluded from that.
pub const LISTING_LAG: TimeDelta = TimeDelta::seconds(15);
