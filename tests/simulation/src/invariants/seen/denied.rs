//! What was seen of calls that AWS denies.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

/// When the denials of each operation began that no success ended, and the last one.
pub(crate) type Seen = BTreeMap<&'static str, (DateTime<Utc>, DateTime<Utc>)>;
