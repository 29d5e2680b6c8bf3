//! Every write of the controllers through either port, in order, and the crash after one of them.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

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
            self.crashed.store(true, Ordering::SeqCst);
            self.crash.notify_one();
            std::future::pending::<()>().await;
        }
    }

    /// Ends when the process dies.
    pub(crate) async fn death(&self) {
        self.crash.notified().await;
    }

    /// Whether the process died since this was last asked.
    pub(crate) fn take_death(&self) -> bool {
        self.crashed.swap(false, Ordering::SeqCst)
    }
}
