//! How often the inventory looks, and how long it keeps what it saw.

use std::time::Duration;

/// The inventory's times. The defaults are those of design section 3 where it names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cadence {
    /// How often every group is read. Default 60 s.
    pub idle: Duration,
    /// The same while a queue of events tells what changes. Default 5 min; groups that change without events stay at
    /// [`Self::idle`].
    pub fed_idle: Duration,
    /// How often groups in transition are read. Default 5 s.
    pub transition: Duration,
    /// How long hooks and launch templates are believed, spread by a tenth each way. Default 1 h.
    pub audit: Duration,
    /// How long a wish to read waits for others to share the call. Default 50 ms.
    pub coalesce: Duration,
    /// How long subnets, security groups and parameters are believed. Default 10 min.
    pub lookup: Duration,
    /// How long the credentials' account and images are believed. Default 1 h.
    pub constant: Duration,
    /// How long an instance type is believed. It never changes, but AWS may begin to offer it in a region, or cease to:
    /// default 24 h, and [`Self::lookup`] for one that the region does not offer.
    pub instance_type: Duration,
    /// How long an error, or an answer that lacks what was asked for, is believed: a mended fault is seen
    /// after this. Default 2 s.
    pub negative: Duration,
    /// How long a write whose answer was lost may still arrive at AWS after its timeout. Default 10 s.
    pub in_flight: Duration,
    /// When a listing that lacked a known group is repeated, first and later. Default 1 s and 5 s.
    pub doubt: (Duration, Duration),
    /// The longest pause between polls that fail; it begins with 1 s and doubles. Default 60 s.
    pub longest_backoff: Duration,
    /// How long facts of machines that belong to no group are kept after they were asked for. Default 10 min.
    pub strangers: Duration,
}

impl Default for Cadence {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            idle: seconds(60),
            fed_idle: seconds(300),
            transition: seconds(5),
            audit: seconds(3600),
            coalesce: Duration::from_millis(50),
            lookup: seconds(600),
            constant: seconds(3600),
            instance_type: seconds(86400),
            negative: seconds(2),
            in_flight: seconds(10),
            doubt: (seconds(1), seconds(5)),
            longest_backoff: seconds(60),
            strangers: seconds(600),
        }
    }
}
