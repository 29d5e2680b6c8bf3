//! The inventory against a scripted cloud, on paused time.

mod absence;
mod absence_model;
mod batching;
mod clock;
mod facts;
mod fence;
mod fence_model;
mod instance_types;
mod inventories;
mod lookups;
mod notices;
mod offers;
mod reach;
mod refreshes;
mod templates;

use std::{sync::Arc, time::Duration};

use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Inventory, View};
use crate::{
    AlwaysLeading, Gateway, Limits,
    testing::{Counter, FakeCloud, TEMPLATE_TAG, TokioClock, group, once_a_minute, pass},
};

pub(super) const DESCRIBE: &str = "DescribeAutoScalingGroups";

/// Longer than a wish waits for others, shorter than any round.
pub(super) const SOON: Duration = Duration::from_millis(200);

pub(super) struct Bench {
    pub(super) cloud: Arc<FakeCloud>,
    pub(super) counter: Arc<Counter>,
    pub(super) clock: Arc<TokioClock>,
    pub(super) inventory: Arc<Inventory>,
    changes: UnboundedReceiver<String>,
    _loop: DropGuard,
}

pub(super) fn bench() -> Bench {
    bench_with(Limits::default())
}

pub(super) fn bench_with(limits: Limits) -> Bench {
    let (cloud, counter, clock) = (FakeCloud::new(), Arc::new(Counter::default()), TokioClock::start());
    let guard = Arc::new(AlwaysLeading);
    let gateway = Gateway::new(cloud.clone(), guard, counter.clone(), clock.clone(), limits);
    let inventory = Inventory::new(Arc::new(gateway), clock.clone(), once_a_minute(), TEMPLATE_TAG);
    let (changes, shutdown) = (inventory.changes(), CancellationToken::new());
    tokio::spawn({
        let (inventory, shutdown) = (inventory.clone(), shutdown.clone());
        async move { inventory.run(shutdown).await }
    });
    Bench { cloud, counter, clock, inventory, changes, _loop: shutdown.drop_guard() }
}

impl Bench {
    /// Puts groups into the cloud, registers them and lets the first poll and its facts come in.
    pub(super) async fn settle(&mut self, names: &[&str]) {
        for name in names {
            self.cloud.put_group(group(name, &[&format!("i-{name}")]));
            self.inventory.register(name);
        }
        pass(SOON * 2).await;
        self.woken();
    }

    /// Who was told of changes since the last look, in order.
    pub(super) fn woken(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.changes.try_recv().ok()).collect()
    }

    pub(super) fn polls(&self) -> usize {
        self.cloud.count(DESCRIBE)
    }
}

pub(super) fn desired(view: &View) -> Option<i32> {
    view.group().map(|group| group.capacity.desired)
}

#[tokio::test(start_paused = true)]
async fn the_futures_of_the_inventory_can_run_anywhere() {
    fn anywhere<T: Send>(value: T) -> T {
        value
    }
    let Bench { inventory, .. } = bench();
    let write = crate::testing::set_desired("a", 1);
    drop(anywhere(inventory.run(CancellationToken::new())));
    drop(anywhere(inventory.poll_due()));
    drop(anywhere(inventory.write(&write)));
    drop(anywhere(inventory.template("a")));
    anywhere(inventory.read_group("a")).await.unwrap();
}
