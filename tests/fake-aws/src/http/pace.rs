//! How virtual time follows the wall clock.

use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};

use chrono::Duration;

use crate::Simulator;

/// How virtual time moves behind the HTTP front.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Only when it is told to.
    Manual,
    /// With the wall clock, times a factor.
    RealTime(f64),
}

/// The part of the wall clock that was not yet passed on.
pub(super) struct Pacer {
    pace: Pace,
    last: Mutex<Instant>,
}

impl Pacer {
    pub(super) fn new(pace: Pace) -> Self {
        Self { pace, last: Mutex::new(Instant::now()) }
    }

    /// Milliseconds of virtual time in one of the wall clock; 1 where time does not flow by itself.
    pub(super) fn factor(&self) -> f64 {
        match self.pace {
            Pace::RealTime(speed) if speed > 0.0 => speed,
            Pace::RealTime(_) | Pace::Manual => 1.0,
        }
    }

    /// Brings virtual time up to the wall clock.
    pub(super) fn catch_up(&self, simulator: &Simulator) {
        let Pace::RealTime(speed) = self.pace else { return };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let passed = now.duration_since(*last).mul_f64(speed.max(0.0));
        *last = now;
        simulator.flow(Duration::from_std(passed).unwrap_or_default());
    }
}
