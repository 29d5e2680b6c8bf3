//! The fence under any order of writes, reads and replies, against its definition.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use tokio::time::Instant;

use crate::{
    View,
    inventory::{
        Cadence,
        fence::{Ending, Start},
        groups::Table,
    },
    testing::group,
};

#[derive(Debug, Clone)]
enum Event {
    BeginWrite,
    Answer,
    Refuse,
    Lose,
    StartRead,
    /// Of the reads under way, this one answers.
    FinishRead(usize),
    Pass(u32),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        2 => Just(Event::BeginWrite),
        2 => Just(Event::Answer),
        1 => Just(Event::Refuse),
        1 => Just(Event::Lose),
        3 => Just(Event::StartRead),
        3 => (0..4_usize).prop_map(Event::FinishRead),
        2 => (0..20_u32).prop_map(Event::Pass),
    ];
    prop::collection::vec(event, 0..60)
}

/// The definition, in terms of the history: positions of events, not tickets.
#[derive(Default)]
struct History {
    now: u32,
    under_way: usize,
    last_answer: Option<usize>,
    may_land_until: Option<u32>,
    reads: Vec<(Start, usize, u32)>,
    shown: Option<(usize, u32)>,
}

impl History {
    fn settled(&self) -> bool {
        self.shown.is_some_and(|(started, at)| {
            self.under_way == 0
                && self.last_answer.is_none_or(|answer| started > answer)
                && self.may_land_until.is_none_or(|until| at >= until)
        })
    }
}

fn time_of_day(seconds: u32) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds.into())
}

proptest! {
    #[test]
    fn a_view_is_settled_exactly_if_its_read_started_after_all_our_writes(events in events()) {
        let (cadence, mut table, mut history) = (Cadence::default(), Table::default(), History::default());
        let began = Instant::now();
        let time = |seconds: u32| began + Duration::from_secs(seconds.into());
        table.register("a", time(0), &cadence);
        for (position, event) in events.into_iter().enumerate() {
            let now = time(history.now);
            match event {
                Event::BeginWrite => {
                    table.begin_write("a");
                    history.under_way += 1;
                }
                Event::Answer | Event::Refuse | Event::Lose if history.under_way == 0 => {}
                Event::Answer => {
                    table.end_write("a", Ending::Answered);
                    history.under_way -= 1;
                    history.last_answer = Some(position);
                }
                Event::Refuse => {
                    table.end_write("a", Ending::Nothing);
                    history.under_way -= 1;
                }
                Event::Lose => {
                    table.end_write("a", Ending::Lost(time(history.now + 15)));
                    history.under_way -= 1;
                    history.last_answer = Some(position);
                    history.may_land_until = history.may_land_until.max(Some(history.now + 15));
                }
                Event::StartRead => {
                    let start = table.start(now, time_of_day(history.now));
                    history.reads.push((start, position, history.now));
                },
                Event::FinishRead(nth) if nth < history.reads.len() => {
                    let was_settled = table.view("a").settled();
                    let (start, started, at) = history.reads.remove(nth);
                    let listed = vec![group("a", &[])];
                    let applied = table.apply(&["a".to_owned()], start, listed, true, now, &cadence);
                    let first = history.shown.is_none();
                    if history.shown.is_none_or(|(shown, _)| started > shown) {
                        history.shown = Some((started, at));
                    }
                    let told = first || (!was_settled && history.settled());
                    prop_assert_eq!(applied.changed.len(), usize::from(told), "each change is told once");
                }
                Event::FinishRead(_) => {}
                Event::Pass(seconds) => history.now += seconds,
            }
            let view = table.view("a");
            prop_assert_eq!(view.settled(), history.settled());
            prop_assert_eq!(view.as_of(), history.shown.map(|(_, at)| time_of_day(at)));
            prop_assert_eq!(matches!(view, View::Present { .. }), history.shown.is_some());
        }
    }
}
