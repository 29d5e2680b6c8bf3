//! The one source of chance in a run.

use std::sync::{Arc, Mutex, PoisonError};

use capasg_controllers::kubernetes::Randomness;

/// A seeded sequence (`SplitMix64`), shared by all that draw from it.
#[derive(Debug, Clone)]
pub struct Random(Arc<Mutex<u64>>);

impl Random {
    /// The sequence of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x5eed)))
    }

    /// The next number.
    #[must_use]
    pub fn next(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if that is 0.
    #[must_use]
    pub fn below(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % bound }
    }

    /// An index into something of this length; 0 if it is empty.
    #[must_use]
    pub fn index(&self, length: usize) -> usize {
        let bound = u64::try_from(length).unwrap_or(u64::MAX);
        usize::try_from(self.below(bound)).unwrap_or(0)
    }

    /// True in `percent` of a hundred cases.
    #[must_use]
    pub fn chance(&self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

impl Randomness for Random {
    fn owner_id(&self) -> String {
        format!("{:016x}", self.next())
    }
}
