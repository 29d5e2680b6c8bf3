//! How long tests wait.

use std::time::Duration;

use anyhow::{Result, bail};
use capasg_environment::Look;

/// How long things may take while many tests share two cores. A change in AWS that nobody told of is seen at the next
/// poll, after up to a minute.
pub const DEADLINE: Duration = Duration::from_mins(5);

/// Waits until `look` holds.
///
/// # Errors
/// When it does not within [`DEADLINE`].
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Result<Look<T>>) -> Result<T> {
    let end = tokio::time::Instant::now() + DEADLINE;
    let mut last = String::from("no look was answered");
    while tokio::time::Instant::now() < end {
        last = match look().await {
            Ok(Look::Done(value)) => return Ok(value),
            Ok(Look::Not(why)) => why,
            Err(error) => format!("{error:#}"),
        };
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bail!("not within {DEADLINE:?}: {what}; last: {last}")
}
