//! One scope's world: its state, its events and the lagging views that reads get.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use chrono::{DateTime, Duration, Utc};

use crate::{
    Scope, Settings, Tree,
    autoscaling::Group,
    bus::Bus,
    ec2::{Capacity, Instance, Network, Template},
    events::{Event, Queue},
    happening::Happening,
    ids::Ids,
    parameters::{self, Parameter},
    time::millis,
};

/// Thousandths of a token, and when they were counted.
pub(crate) type Buckets = BTreeMap<&'static str, (i64, DateTime<Utc>)>;

/// Everything that a reply can show.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    pub(crate) groups: BTreeMap<String, Group>,
    pub(crate) templates: BTreeMap<String, Template>,
    pub(crate) instances: BTreeMap<String, Instance>,
    /// Shared by the past states that lagging reads need.
    pub(crate) network: Arc<Network>,
    /// Shared likewise.
    pub(crate) parameters: Arc<BTreeMap<String, Parameter>>,
    /// Replies by operation and client token, with the parameters they answered.
    pub(crate) tokens: BTreeMap<(&'static str, String), (Tree, Tree)>,
}

/// One account in one region.
pub(crate) struct Region {
    pub(crate) scope: Scope,
    pub(crate) now: DateTime<Utc>,
    pub(crate) ids: Ids,
    pub(crate) settings: Settings,
    pub(crate) capacity: Capacity,
    /// Statuses that tests made up, by the refresh that shows them.
    pub(crate) disguises: BTreeMap<String, String>,
    /// Alarms of `CloudWatch` in the state ALARM.
    pub(crate) alarms: BTreeSet<String>,
    pub(crate) state: State,
    pub(crate) buckets: Buckets,
    pub(crate) bus: Bus,
    pub(crate) feed: Vec<Happening>,
    pub(crate) queue: Queue,
    /// Earlier states, each with the time at which it ended; kept only while reads lag.
    history: VecDeque<(DateTime<Utc>, State)>,
}

/// What a read sees.
pub(crate) struct View<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) settings: &'a Settings,
    pub(crate) state: &'a State,
}

impl Region {
    pub(crate) fn new(seed: u64, scope: &Scope, now: DateTime<Utc>, settings: Settings) -> Self {
        let state = State {
            network: Arc::new(Network::of(scope)),
            parameters: Arc::new(parameters::defaults(now)),
            ..State::default()
        };
        Self {
            scope: scope.clone(),
            now,
            ids: Ids::new(seed, scope),
            settings,
            capacity: Capacity::default(),
            disguises: BTreeMap::new(),
            alarms: BTreeSet::new(),
            state,
            buckets: Buckets::default(),
            bus: Bus::new(seed, scope),
            feed: Vec::new(),
            queue: Queue::default(),
            history: VecDeque::new(),
        }
    }

    pub(crate) fn schedule(&mut self, after_millis: u64, event: Event) {
        self.queue.push(self.now + millis(after_millis), event);
    }

    pub(crate) fn schedule_at(&mut self, at: DateTime<Utc>, event: Event) {
        self.queue.push(at.max(self.now), event);
    }

    pub(crate) fn next_event(&self) -> Option<DateTime<Utc>> {
        self.queue.next()
    }

    /// A group compares soon what it has with what it should have.
    pub(crate) fn reconsider(&mut self, group: &str) {
        self.schedule(self.settings.scaling_millis, Event::Tick(group.to_owned()));
    }

    /// Keeps the present state as a past one, if reads lag; called before every change.
    pub(crate) fn remember(&mut self) {
        let lag = millis(self.settings.read_lag_millis);
        if lag.is_zero() {
            self.history.clear();
            return;
        }
        while self.history.front().is_some_and(|(until, _)| *until <= self.now - lag) {
            self.history.pop_front();
        }
        self.history.push_back((self.now, self.state.clone()));
    }

    /// The state as a read at this moment sees it.
    pub(crate) fn view(&mut self) -> View<'_> {
        let mut lag = self.settings.read_lag_millis;
        if self.settings.read_lag_jitter && lag > 0 {
            lag = self.ids.next() % (lag + 1);
        }
        let then = self.now - millis(lag);
        let past = if lag == 0 { None } else { self.history.iter().find(|(until, _)| *until > then) };
        let state = past.map_or(&self.state, |(_, state)| state);
        View { scope: &self.scope, settings: &self.settings, state }
    }

    /// The network, to be changed.
    pub(crate) fn network_mut(&mut self) -> &mut Network {
        Arc::make_mut(&mut self.state.network)
    }

    /// An ARN of this scope.
    pub(crate) fn arn(&self, service: &str, resource: &str) -> String {
        arn(&self.scope, service, resource)
    }

    /// How long ago something happened.
    pub(crate) fn since(&self, then: DateTime<Utc>) -> Duration {
        self.now - then
    }
}

/// An ARN in a scope.
pub(crate) fn arn(scope: &Scope, service: &str, resource: &str) -> String {
    format!("arn:{}:{service}:{}:{}:{resource}", scope.partition(), scope.region, scope.account)
}
