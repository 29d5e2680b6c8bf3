//! The policy of the documentation, by which every call of the controllers is decided.

use anyhow::{Result, bail};
use capasg_fake_aws::{LogFilter, Simulator};
use capasg_test_objects::manager_policies;

use super::World;
use crate::cloud::MANAGER;

const USER: &str = "arn:aws:iam::123456789012:user/manager";

/// From now on it decides.
///
/// # Panics
/// If it is no valid policy.
#[expect(clippy::expect_used, reason = "the file is compiled in and read by every run")]
pub(super) fn enforce(simulator: &Simulator) {
    let policies = manager_policies().expect("the policies are JSON");
    simulator.put_access_key(MANAGER, USER);
    simulator.set_policies(USER, &policies).expect("the policies are valid");
}

impl World {
    /// The policy allows whatever the controllers do.
    pub(super) fn nothing_is_denied(&self) -> Result<()> {
        if !self.setup.policy {
            return Ok(());
        }
        let log = self.simulator.log(&LogFilter::default().since(self.watchdog.seen_calls).denied());
        // What was deleted by a call without an answer has no tags; a read shows that it is gone.
        let denied = log.iter().filter_map(|entry| entry.denied.as_ref()).find(|denied| !denied.is_absent);
        let Some(denied) = denied else { return Ok(()) };
        bail!("the policy denies {} on {}\n{}", denied.action, denied.resource, self.describe());
    }
}
