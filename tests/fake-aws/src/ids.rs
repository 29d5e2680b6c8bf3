//! Seeded identifiers: the same seed gives the same ids in the same order.

use std::fmt::Write as _;

use crate::Scope;

/// A `SplitMix64` generator; each scope has its own, so that tests in regions of their own do not disturb each other.
#[derive(Debug, Clone)]
pub(crate) struct Ids(u64);

impl Ids {
    pub(crate) fn new(seed: u64, scope: &Scope) -> Self {
        // FNV-1a over the scope keeps regions apart under one seed.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in scope.account.bytes().chain([0]).chain(scope.region.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Self(seed ^ hash)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// `<prefix>-0` and 16 more hex digits: the 17 digits of today's resource ids.
    pub(crate) fn resource(&mut self, prefix: &str) -> String {
        format!("{prefix}-0{:016x}", self.next())
    }

    /// A version 4 UUID.
    pub(crate) fn uuid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        let mut hex = String::with_capacity(36);
        let _ = write!(hex, "{:08x}-{:04x}-4{:03x}-", high >> 32, (high >> 16) & 0xffff, high & 0xfff);
        let _ = write!(hex, "{:04x}-{:012x}", 0x8000 | ((low >> 48) & 0x3fff), low & 0xffff_ffff_ffff);
        hex
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_form_of_aws_and_repeat_per_seed_and_scope() {
        let scope = Scope::region("eu-west-1");
        let mut ids = Ids::new(1, &scope);
        let id = ids.resource("i");
        assert_eq!(id.len(), 19);
        assert_eq!(ids.uuid().len(), 36);
        assert_eq!(Ids::new(1, &scope).resource("i"), id);
        assert_ne!(Ids::new(2, &scope).resource("i"), id);
        assert_ne!(Ids::new(1, &Scope::region("eu-west-2")).resource("i"), id);
    }
}
