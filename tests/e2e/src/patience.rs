//! How long tests wait.

use std::time::Duration;

use anyhow::{Result, bail};
use capasg_environment::Look;

/// How long things may take while many tests share two cores. A change in AWS that nobody told of is seen at the next
/// poll, after up to a minute.
pub const DEADLINE: Duration = Duration::from_mins(5);

/// Between two looks.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Waits until `look` holds.
///
/// # Errors
/// When it does not within [`DEADLINE`].
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Result<Look<T>>) -> Result<T> {
    let end = tokio::time::Instant::now() + DEADLINE;
    let mut last = String::from("no look was answered");
    while tokio::time::Instant::now() < end {
        let begun = tokio::time::Instant::now();
        last = match look().await {
            Ok(Look::Done(value)) => return Ok(value),
            Ok(Look::Not(why)) => why,
            Err(error) => format!("{error:#}"),
        };
        // Where a look takes long, others need the processors, too.
        tokio::time::sleep(begun.elapsed().clamp(SHORTEST_PAUSE, LONGEST_PAUSE)).await;
    }
    bail!("not within {DEADLINE:?}: {what}; last: {last}")
}
