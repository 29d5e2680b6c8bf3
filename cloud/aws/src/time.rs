//! AWS's timestamps as the port's.

use aws_smithy_types::DateTime as AwsDateTime;
use chrono::{DateTime, Utc};

/// The same instant; `None` if it is absent or outside what chrono can say.
pub(crate) fn instant(value: Option<&AwsDateTime>) -> Option<DateTime<Utc>> {
    let value = value?;
    DateTime::from_timestamp(value.secs(), value.subsec_nanos())
}
