//! A machine.

use std::{collections::BTreeMap, sync::Arc};

use chrono::{DateTime, Utc};

use super::Volume;
use crate::autoscaling::Membership;

/// EC2's state of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ec2State {
    Pending,
    Running,
    Stopping,
    Stopped,
    ShuttingDown,
    Terminated,
}

/// How a machine is paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Market {
    OnDemand,
    Spot,
}

/// A machine; `group` holds what its Auto Scaling group knows of it.
#[derive(Debug, Clone)]
pub(crate) struct Instance {
    pub(crate) id: String,
    pub(crate) state: Ec2State,
    pub(crate) kind: String,
    pub(crate) vcpus: u32,
    pub(crate) image: String,
    pub(crate) zone: String,
    pub(crate) subnet: String,
    pub(crate) vpc: String,
    pub(crate) address: String,
    pub(crate) market: Market,
    pub(crate) security_groups: Vec<String>,
    pub(crate) profile: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) user_data: Option<Arc<str>>,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) launched: DateTime<Utc>,
    pub(crate) reason: String,
    pub(crate) impaired: bool,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) group: Option<Membership>,
}
