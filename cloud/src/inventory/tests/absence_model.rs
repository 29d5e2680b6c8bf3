//! Absence under any order of listings, against its definition.

use std::time::Duration;

use chrono::DateTime;
use proptest::prelude::*;
use tokio::time::Instant;

use crate::{
    View,
    inventory::{Cadence, groups::Table},
    testing::group,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listing {
    Holds,
    /// Whole, with another group in it.
    Lacks,
    /// Whole and empty.
    Empty,
    /// A page failed before the group was seen.
    Broken,
}

fn listings() -> impl Strategy<Value = Vec<(Listing, u64)>> {
    let listing = prop_oneof![
        2 => Just(Listing::Holds),
        4 => Just(Listing::Lacks),
        3 => Just(Listing::Empty),
        2 => Just(Listing::Broken),
    ];
    // Milliseconds since the one before.
    prop::collection::vec((listing, prop_oneof![0..900_u64, 900..6000_u64]), 0..30)
}

proptest! {
    #[test]
    fn a_known_group_is_gone_only_after_whole_listings_apart_lacked_it(listings in listings()) {
        let (cadence, mut table, mut now) = (Cadence::default(), Table::default(), Instant::now());
        let names = ["a".to_owned(), "b".to_owned()];
        for name in &names {
            table.register(name, now, &cadence);
        }
        let start = table.start(now, DateTime::UNIX_EPOCH);
        table.apply(&names, start, vec![group("a", &[]), group("b", &[])], true, now, &cadence);
        // When the whole listings since it was seen last lacked it, and whether they were empty.
        let mut lacking: Vec<(Instant, bool)> = Vec::new();
        for (listing, pause) in listings {
            now += Duration::from_millis(pause);
            let start = table.start(now, DateTime::UNIX_EPOCH);
            let (items, whole) = match listing {
                Listing::Holds => (vec![group("a", &[]), group("b", &[])], true),
                Listing::Lacks => (vec![group("b", &[])], true),
                Listing::Empty => (vec![], true),
                Listing::Broken => (vec![], false),
            };
            match listing {
                Listing::Holds => lacking.clear(),
                Listing::Lacks | Listing::Empty => lacking.push((now, listing == Listing::Empty)),
                Listing::Broken => {}
            }
            let was_gone = matches!(table.view("a"), View::Absent { .. });
            let applied = table.apply(&names, start, items, whole, now, &cadence);
            match table.view("a") {
                View::Present { .. } => {
                    prop_assert!(!was_gone || listing == Listing::Holds);
                    // Many listings far apart cannot be doubted for ever.
                    let spread = lacking.first().map(|(first, _)| (now - *first).as_millis());
                    let apart = lacking.windows(2).filter(|pair| pair[1].0 - pair[0].0 >= Duration::from_secs(5));
                    prop_assert!(apart.count() < 3, "doubted for {:?} ms", spread);
                }
                View::Absent { .. } if !was_gone => {
                    let ((first, _), (last, empty)) = (lacking[0], lacking[lacking.len() - 1]);
                    let (listings, seconds) = if empty { (3, 6) } else { (2, 1) };
                    prop_assert!(whole && lacking.len() >= listings);
                    prop_assert!(last - first >= Duration::from_secs(seconds));
                    prop_assert!(applied.changed.contains(&"a".to_owned()));
                }
                View::Absent { .. } => prop_assert!(listing != Listing::Holds),
                View::Unknown => prop_assert!(false, "what was seen is not forgotten"),
            }
        }
    }
}
