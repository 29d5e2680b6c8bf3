//! The policy of the documentation, by which every call of the controllers is decided.

use anyhow::{Result, bail};
use capasg_api::names::tags;
use capasg_fake_aws::{LogFilter, Simulator};
use serde_json::{Value, json};

use super::World;
use crate::cloud::MANAGER;

const POLICY: &str = include_str!("../../../../docs/iam-policy.json");
const USER: &str = "arn:aws:iam::123456789012:user/manager";

/// What `capasg iam print` adds for roles of instance profiles and for adoptions.
fn additions() -> [Value; 2] {
    let unowned = format!("aws:ResourceTag/{}", tags::OWNER_ID);
    let owned = format!("aws:RequestTag/{}", tags::OWNER_ID);
    [
        json!({"Effect": "Allow", "Action": "iam:PassRole", "Resource": "*"}),
        json!({
            "Effect": "Allow",
            "Action": "autoscaling:CreateOrUpdateTags",
            "Resource": "*",
            "Condition": {"Null": {unowned: "true", owned: "false"}},
        }),
    ]
}

/// From now on it decides.
///
/// # Panics
/// If it is no valid policy.
#[expect(clippy::expect_used, reason = "the file is compiled in and read by every run")]
pub(super) fn enforce(simulator: &Simulator) {
    let policy: Value = serde_json::from_str(POLICY).expect("the policy is JSON");
    let more = json!({"Version": "2012-10-17", "Statement": additions()});
    simulator.put_access_key(MANAGER, USER);
    simulator.set_policies(USER, &[policy, more]).expect("the policies are valid");
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
