//! How long things take, and the switches for behaviour that AWS does not document.

use serde::{Deserialize, Serialize};

/// Settings of one scope; a world's settings are what new scopes start with. Times are milliseconds of virtual time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches, each on or off")]
pub struct Settings {
    /// From a difference between desired and actual capacity to the launch or end that answers it. Default 2 000.
    pub scaling_millis: u64,
    /// From `Pending` to a running machine (then hooks, then `InService`). Default 15 000.
    pub launch_millis: u64,
    /// From `Pending:Proceed` to `InService`, and from `Terminating` to `Terminating:Wait`. Default 1 000.
    pub step_millis: u64,
    /// From a machine's shutting down to `terminated`. Default 20 000.
    pub terminate_millis: u64,
    /// From an end out of band to the group's noticing it. Default 10 000.
    pub detect_millis: u64,
    /// From a failed status check to the group's noticing it. Default 120 000.
    pub impaired_millis: u64,
    /// From `Unhealthy` to the start of the replacement. Default 5 000.
    pub replace_millis: u64,
    /// From an imbalance between zones to the launch that answers it, unless `AZRebalance` is suspended.
    /// Default 60 000.
    pub rebalance_millis: u64,
    /// From one step of an instance refresh to the next. The real pace is not documented. Default 5 000.
    pub refresh_millis: u64,
    /// From a group's last instance to the group's absence. Default 5 000.
    pub delete_millis: u64,
    /// From a spot interruption's warning to the machine's end. Default 120 000.
    pub spot_warning_millis: u64,
    /// How long `DescribeInstances` lists a terminated instance. Default 50 minutes.
    pub forget_millis: u64,
    /// Wait after the first failed launch, doubled up to [`Settings::retry_max_millis`]. The real pace is not
    /// documented. Default 15 000.
    pub retry_millis: u64,
    /// The longest wait between failed launches. Default 300 000.
    pub retry_max_millis: u64,
    /// Reads of Auto Scaling and EC2 show the state of this long ago. Default 0.
    pub read_lag_millis: u64,
    /// Draw each read's lag between 0 and [`Settings::read_lag_millis`], so that views may go back. Default false.
    pub read_lag_jitter: bool,
    /// A page has at most this many entries, whatever was asked for; AWS may return short pages. Default none.
    pub page_limit: Option<usize>,
    /// Whether `TerminateInstanceInAutoScalingGroup` with decrement, repeated on an instance that is already
    /// terminating, decrements again (undocumented; the worse case is the default). Default true.
    pub repeated_end_decrements: bool,
    /// What a batch of ends does if one of its instances is not in the group (undocumented).
    pub batch_ends: BatchEnds,
    /// Launched machines die at once, as with an encryption key that AWS's role may not use. Default false.
    pub launches_die: bool,
    /// Why they die: a code of EC2's `StateReason` and its text. Default `Client.InternalError: Client error on launch.`
    pub launches_die_of: String,
    /// Machines are launched from the version before the one that the group names: what an adapter or another
    /// implementation of the API may report. Default false.
    pub launches_older_version: bool,
    /// A group whose launches have failed for this long suspends its process `Launch` by itself. What AWS writes as the
    /// reason is not documented. Default 24 hours.
    pub give_up_millis: u64,
    /// From something that happens to the event about it in the queues that its rules name. Default 500.
    pub event_millis: u64,
    /// Up to this long an event takes beyond that, drawn for each: late, and out of order. Default 0.
    pub event_jitter_millis: u64,
    /// In how many of a hundred cases an event comes twice. Default 0.
    pub event_twice_percent: u64,
    /// In how many of a hundred cases an event does not come. Default 0.
    pub event_lost_percent: u64,
    /// Accept any image, subnet, security group, profile and key of plausible form. Default false.
    pub accept_any_id: bool,
    /// vCPUs that may run at once in the scope; more launches fail as over quota. Service Quotas shows it as the quota of
    /// Standard instances, On-Demand and Spot. Default none.
    pub vcpu_limit: Option<u32>,
    /// Groups per scope. Default 500.
    pub max_groups: usize,
    /// The one bucket that all Auto Scaling calls of a scope share (AWS publishes no numbers). Default none.
    pub autoscaling_throttle: Option<Throttle>,
    /// A bucket for each EC2 operation of a scope. Default none.
    pub ec2_throttle: Option<Throttle>,
    /// Keep what happens for [`crate::Simulator::take_feed`]. Default false.
    pub keep_feed: bool,
}

/// A token bucket on virtual time: each call takes one token, an empty bucket refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Throttle {
    /// Tokens that a full bucket holds.
    pub burst: u32,
    /// Tokens that come back per second.
    pub per_second: u32,
}

/// What a batch of ends does if one instance cannot be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BatchEnds {
    /// Refuses the whole call; nothing ends.
    Atomic,
    /// Ends those that it can and leaves out the others.
    Partial,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            scaling_millis: 2_000,
            launch_millis: 15_000,
            step_millis: 1_000,
            terminate_millis: 20_000,
            detect_millis: 10_000,
            impaired_millis: 120_000,
            replace_millis: 5_000,
            rebalance_millis: 60_000,
            refresh_millis: 5_000,
            delete_millis: 5_000,
            spot_warning_millis: 120_000,
            forget_millis: 3_000_000,
            retry_millis: 15_000,
            retry_max_millis: 300_000,
            read_lag_millis: 0,
            read_lag_jitter: false,
            page_limit: None,
            repeated_end_decrements: true,
            batch_ends: BatchEnds::Atomic,
            launches_die: false,
            launches_die_of: "Client.InternalError: Client error on launch.".to_owned(),
            launches_older_version: false,
            give_up_millis: 86_400_000,
            event_millis: 500,
            event_jitter_millis: 0,
            event_twice_percent: 0,
            event_lost_percent: 0,
            accept_any_id: false,
            vcpu_limit: None,
            max_groups: 500,
            autoscaling_throttle: None,
            ec2_throttle: None,
            keep_feed: false,
        }
    }
}

impl Settings {
    /// Overlays the members of a JSON object.
    ///
    /// # Errors
    /// Names the member that is unknown or has the wrong kind.
    pub fn merged(&self, changes: &serde_json::Value) -> Result<Self, serde_json::Error> {
        let mut value = serde_json::to_value(self)?;
        if let (Some(into), Some(from)) = (value.as_object_mut(), changes.as_object()) {
            into.extend(from.clone());
        }
        serde_json::from_value(value)
    }
}
