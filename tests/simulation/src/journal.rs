//! Every write of the controllers through either port, in order, the crash before or after one of their calls, and
//! those who look on.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use capasg_cloud::{CloudError, Write};
use capasg_controllers::kubernetes::KubeWrite;
use chrono::{DateTime, Utc};
use tokio::sync::Notify;

/// Which port a write went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// The API server.
    Kubernetes,
    /// The cloud.
    Cloud,
}

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Virtual time.
    pub at: DateTime<Utc>,
    /// The port.
    pub port: Port,
    /// What it was: an AWS operation, or the words of a Kubernetes write.
    pub what: String,
    /// Whether it changed something; a refused write did not.
    pub changed: bool,
}

/// What those who look on are told at once.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Moment<'a> {
    /// A call arrives: what happened before is over.
    Call,
    /// A call to AWS failed, or is not answered.
    Failed {
        /// The operation.
        api: &'static str,
        /// Whether AWS rejects it, so that it is tried again after minutes.
        is_rejected: bool,
        /// Whether AWS rejects a launch template version for what the spec names and never existed: the group launches from
        /// another one meanwhile.
        is_of_spec: bool,
    },
    /// A call to AWS was answered.
    Answered {
        /// The operation.
        api: &'static str,
        /// The error with which AWS denies it, or fails by itself.
        failure: Option<&'a CloudError>,
    },
    /// A write to the API server was carried out.
    Kubernetes {
        /// The write.
        write: &'a KubeWrite,
        /// Whether it changed something.
        changed: bool,
    },
    /// A write to the cloud is sent, and takes time to arrive.
    Sent {
        /// The write.
        write: &'a Write,
    },
    /// A write to the cloud was carried out, refused or lost.
    Cloud {
        /// The write.
        write: &'a Write,
    },
}

/// Looks on.
pub(crate) type Witness = Arc<dyn Fn(Moment<'_>) + Send + Sync>;

/// What happens right after a write.
type Hook = Box<dyn FnOnce() + Send>;

/// The writes of one run.
#[derive(Default)]
pub struct Journal {
    hook: Mutex<Option<(usize, Hook)>>,
    entries: Mutex<Vec<Entry>>,
    crash_at: Mutex<Option<usize>>,
    crash_every: Mutex<Option<usize>>,
    crashed: AtomicBool,
    crash: Notify,
    calls: Mutex<Calls>,
    witness: Mutex<Option<Witness>>,
}

/// The calls through either port, reads included.
#[derive(Debug, Default)]
struct Calls {
    count: usize,
    /// The process dies before this one.
    fatal: Option<usize>,
    /// The process dies with the first write from this call on, whose effect comes so many milliseconds later.
    late: Option<(usize, u64)>,
    /// It died that way.
    in_flight: bool,
}

impl Journal {
    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many writes there were.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Whether there was none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The writes from the `since`th on.
    #[must_use]
    pub fn since(&self, since: usize) -> Vec<Entry> {
        self.entries().get(since..).unwrap_or_default().to_vec()
    }

    /// The process dies right after the effect of the write that makes them `count`: it never hears the answer.
    pub fn crash_after(&self, count: usize) {
        *self.crash_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(count);
    }

    /// Something happens right after the effect of the write that makes them `count`, before its writer hears of it.
    pub fn after(&self, count: usize, hook: impl FnOnce() + Send + 'static) {
        *self.hook.lock().unwrap_or_else(PoisonError::into_inner) = Some((count, Box::new(hook)));
    }

    /// Every process dies right after the effect of its `count`th write.
    pub fn crash_every(&self, count: usize) {
        *self.crash_every.lock().unwrap_or_else(PoisonError::into_inner) = Some(count);
        self.crash_after(self.len() + count);
    }

    /// Calls through either port so far, reads included.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.call_counts().count
    }

    fn call_counts(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process is not to die any more.
    pub fn spare(&self) {
        *self.crash_at.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let mut calls = self.call_counts();
        (calls.fatal, calls.late) = (None, None);
    }

    /// The process dies before its `count`th call through either port, reads included.
    pub fn crash_before_call(&self, count: usize) {
        self.call_counts().fatal = Some(count);
    }

    /// The process dies with the first write after `count` calls; its effect comes so much later.
    pub fn land_late(&self, count: usize, millis: u64) {
        self.call_counts().late = Some((count, millis));
    }

    /// Whether this write lands late, and by how many milliseconds.
    pub(crate) fn take_late(&self) -> Option<u64> {
        let mut calls = self.call_counts();
        let count = calls.count;
        let late = calls.late.take_if(|(at, _)| *at <= count).map(|(_, millis)| millis);
        calls.in_flight |= late.is_some();
        late
    }

    /// Whether the process died with a write in flight.
    pub(crate) fn take_in_flight(&self) -> bool {
        std::mem::take(&mut self.call_counts().in_flight)
    }

    pub(crate) fn set_witness(&self, witness: Witness) {
        *self.witness.lock().unwrap_or_else(PoisonError::into_inner) = Some(witness);
    }

    /// Tells those who look on.
    pub(crate) fn tell(&self, moment: Moment<'_>) {
        let witness = self.witness.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(witness) = witness {
            witness(moment);
        }
    }

    /// A call arrives. Never returns if the process dies before it.
    pub(crate) async fn called(&self) {
        self.tell(Moment::Call);
        let dies = {
            let mut calls = self.call_counts();
            calls.count += 1;
            let count = calls.count;
            calls.fatal.take_if(|at| *at <= count).is_some()
        };
        if dies {
            self.die().await;
        }
    }

    /// The process dies.
    pub(crate) async fn die(&self) {
        self.crashed.store(true, Ordering::SeqCst);
        self.crash.notify_one();
        std::future::pending::<()>().await;
    }

    /// Records a write. Never returns if the process dies by it.
    pub(crate) async fn wrote(&self, entry: Entry) {
        let count = {
            let mut entries = self.entries();
            entries.push(entry);
            entries.len()
        };
        let hook = {
            let mut hook = self.hook.lock().unwrap_or_else(PoisonError::into_inner);
            hook.take_if(|(at, _)| *at <= count)
        };
        if let Some((_, hook)) = hook {
            hook();
        }
        let dies = {
            let mut crash_at = self.crash_at.lock().unwrap_or_else(PoisonError::into_inner);
            crash_at.take_if(|at| *at <= count).is_some()
        };
        if dies {
            let every = *self.crash_every.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(every) = every {
                self.crash_after(count + every);
            }
            self.die().await;
        }
    }

    /// Ends when the process dies.
    pub(crate) async fn death(&self) {
        self.crash.notified().await;
    }

    /// Whether the process died and nobody has asked yet.
    pub(crate) fn has_died(&self) -> bool {
        self.crashed.load(Ordering::SeqCst)
    }

    /// Whether the process died since this was last asked.
    pub(crate) fn take_death(&self) -> bool {
        self.crashed.swap(false, Ordering::SeqCst)
    }
}
