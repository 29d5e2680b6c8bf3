//! The handle to a simulated world, its clock and its log.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use chrono::{DateTime, Duration, Utc};

use crate::{
    Answer, ApiError, Call, Counts, Fault, LogEntry, LogFilter, Scope, Service, Settings, Tree, call,
    faults::Faults, iam::Iam, log::Log, region::Region, time, world::World,
};

/// Replies to calls in the place of the simulated AWS.
type Script = Box<dyn FnMut(Call) -> Result<Tree, ApiError> + Send>;

/// A simulated AWS: cheap to clone, all clones are one world.
#[derive(Clone)]
pub struct Simulator {
    world: Arc<Mutex<World>>,
    script: Arc<Mutex<Option<Script>>>,
}

impl Default for Simulator {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Simulator {
    /// An empty world whose ids come from `seed` and whose time starts at [`crate::EPOCH`].
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with_settings(seed, Settings::default())
    }

    /// The same with settings that every scope starts with.
    #[must_use]
    pub fn with_settings(seed: u64, settings: Settings) -> Self {
        let world = World {
            seed,
            now: time::start(),
            stopped: false,
            settings,
            regions: BTreeMap::new(),
            faults: Faults::default(),
            iam: Iam::default(),
            log: Log::default(),
        };
        Self { world: Arc::new(Mutex::new(world)), script: Arc::default() }
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        // A panic elsewhere must not hide behind this lock; the world is plain data.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries a call out at the present virtual time.
    ///
    /// Parameters and replies use the service model's member names, see [`Tree`].
    ///
    /// # Errors
    /// What AWS would answer; `SimulatorUnsupported` for parameters that AWS has and the simulator does not;
    /// [`ApiError::lost`] where a fault swallowed the reply.
    pub fn call(
        &self,
        scope: &Scope,
        service: Service,
        action: &str,
        params: Tree,
    ) -> Result<Tree, ApiError> {
        let call = Call {
            scope: scope.clone(),
            service,
            action: action.to_owned(),
            params,
            access_key: None,
            session_token: None,
            wall_time: None,
        };
        self.answer(call).result
    }

    /// Carries a call out and tells also how long its answer is to be held back, and its request id.
    #[must_use]
    pub fn answer(&self, call: Call) -> Answer {
        if let Some(script) = self.script().as_mut() {
            let request_id = "00000000-0000-4000-8000-000000000000".to_owned();
            return Answer { result: script(call), delay: std::time::Duration::ZERO, request_id };
        }
        call::answer(&mut self.world(), call)
    }

    /// From now on `reply` answers every call, in process and over HTTP, and no call has an effect or is logged. It gets
    /// all parameters as they were parsed, user data included, and must not call this simulator.
    pub fn set_script(&self, reply: impl FnMut(Call) -> Result<Tree, ApiError> + Send + 'static) {
        *self.script() = Some(Box::new(reply));
    }

    fn script(&self) -> MutexGuard<'_, Option<Script>> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The virtual time.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        self.world().now
    }

    /// Lets virtual time pass, with everything that happens in it.
    pub fn advance(&self, by: Duration) {
        let mut world = self.world();
        let to = world.now + by;
        world.set_time(to);
    }

    /// Lets virtual time pass unless the world is stopped; how real-time mode moves the clock.
    pub(crate) fn flow(&self, by: Duration) {
        let mut world = self.world();
        if !world.stopped {
            let to = world.now + by;
            world.set_time(to);
        }
    }

    /// Moves virtual time forward to a moment; time never goes back, an earlier one is ignored.
    pub fn set_time(&self, to: DateTime<Utc>) {
        self.world().set_time(to);
    }

    /// When the next thing will happen by itself, in any scope.
    #[must_use]
    pub fn next_event(&self) -> Option<DateTime<Utc>> {
        self.world().regions.values().filter_map(Region::next_event).min()
    }

    /// Stops virtual time in real-time mode: calls are answered, nothing moves on by itself.
    pub fn stop_world(&self) {
        self.world().stopped = true;
    }

    /// Lets virtual time flow again.
    pub fn start_world(&self) {
        self.world().stopped = false;
    }

    /// Adds a fault.
    pub fn add_fault(&self, fault: Fault) {
        self.world().faults.add(fault);
    }

    /// Removes the faults of a region, or all of them.
    pub fn clear_faults(&self, region: Option<&str>) {
        self.world().faults.clear(region);
    }

    /// Removes a fault that was added as it is here and strikes for ever.
    pub fn remove_fault(&self, fault: &Fault) {
        self.world().faults.remove(fault);
    }

    /// The faults that wait for calls.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        self.world().faults.list().to_vec()
    }

    /// The calls that match, oldest first.
    #[must_use]
    pub fn log(&self, filter: &LogFilter) -> Vec<LogEntry> {
        self.world().log.entries(filter)
    }

    /// How many calls match.
    #[must_use]
    pub fn counts(&self, filter: &LogFilter) -> Counts {
        self.world().log.counts(filter)
    }

    /// Forgets logged calls; sequence numbers go on.
    pub fn clear_log(&self) {
        self.world().log.clear();
    }
}
