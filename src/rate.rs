//! A limit of requests that strangers cause.

use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// Allows some at once, and then so many a second.
pub struct Rate {
    burst: f64,
    per_second: f64,
    left: Mutex<(Instant, f64)>,
}

impl Rate {
    /// All of the burst is left.
    #[must_use]
    pub fn new(burst: u16, per_second: u16) -> Self {
        let burst = f64::from(burst);
        Self { burst, per_second: f64::from(per_second), left: Mutex::new((Instant::now(), burst)) }
    }

    /// Whether one more is allowed now.
    #[must_use]
    pub fn take(&self) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let regained = (now - left.0).as_secs_f64() * self.per_second;
        *left = (now, (left.1 + regained).min(self.burst));
        let is_left = left.1 >= 1.0;
        if is_left {
            left.1 -= 1.0;
        }
        is_left
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_allowed_and_then_a_rate() {
        let rate = Rate::new(3, 2);
        let allowed = || (0..100).filter(|_| rate.take()).count();
        assert_eq!(allowed(), 3);
        advance(Duration::from_secs(1)).await;
        assert_eq!(allowed(), 2);
        advance(Duration::from_hours(1)).await;
        assert_eq!(allowed(), 3);
    }
}
