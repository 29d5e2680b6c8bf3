//! Finds bounds of the group that another actor changed.

use std::collections::BTreeSet;

use capasg_cloud::Group;

use crate::machine_pool::decide::settings::text::{MAX_SIZE, MIN_SIZE};
use crate::machine_pool::model::call_kind::CallKind;
use crate::machine_pool::model::{Comparison, Difference, Input};

/// The bounds that are about to be set to the `planned` `MinSize` and `MaxSize`, although this controller did not
/// change them.
#[must_use]
pub fn drift(input: &Input<'_>, group: &Group, planned: Option<(i32, i32)>) -> Comparison {
    let mut comparison = Comparison::default();
    let (Some(known), Some((min, max))) = (input.memory.drift.bounds(), planned) else { return comparison };
    let have = group.capacity;
    for (path, known, seen, wanted) in
        [(MIN_SIZE, known.min, have.min, min), (MAX_SIZE, known.max, have.max, max)]
    {
        if seen != known && seen != wanted {
            comparison.differences.push(Difference {
                path: path.to_owned(),
                seen: seen.to_string(),
                wanted: wanted.to_string(),
                calls: BTreeSet::from([CallKind::UpdateCapacity]),
                is_drift: true,
            });
        }
    }
    comparison
}
