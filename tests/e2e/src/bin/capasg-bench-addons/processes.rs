//! What a manager and its children take from the machine, sampled from `/proc`.

use std::{
    collections::BTreeMap,
    fs,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result};
use capasg_environment::process_stat;
use tokio::time::interval;
use tokio_util::task::AbortOnDropHandle;

/// Between two samples of memory.
const PERIOD: Duration = Duration::from_millis(200);
/// Ticks of processor time a second, as `/proc` counts them on Linux.
const TICKS: f64 = 100.0;

/// The highest sums so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Peak {
    /// MB of all processes together, as resident: pages of a program that several share count for each.
    pub resident: f64,
    /// MB of all processes together; a page that several share counts once.
    pub proportional: f64,
    /// How many processes there were at once.
    pub processes: usize,
}

/// A manager with its children.
pub struct Tree {
    manager: i32,
    peak: Arc<Mutex<Peak>>,
    _task: AbortOnDropHandle<()>,
}

impl Tree {
    /// Samples from now on, until dropped.
    pub fn of(manager: i32) -> Self {
        let peak = Arc::<Mutex<Peak>>::default();
        let highest = Arc::clone(&peak);
        let task = tokio::spawn(async move {
            let mut ticks = interval(PERIOD);
            loop {
                ticks.tick().await;
                let now = sample(manager);
                let mut highest = highest.lock().unwrap_or_else(PoisonError::into_inner);
                highest.resident = highest.resident.max(now.resident);
                highest.proportional = highest.proportional.max(now.proportional);
                highest.processes = highest.processes.max(now.processes);
            }
        });
        Self { manager, peak, _task: AbortOnDropHandle::new(task) }
    }

    /// The highest sums so far.
    pub fn peak(&self) -> Peak {
        *self.peak.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sums now.
    pub fn now(&self) -> Peak {
        sample(self.manager)
    }

    /// User and system time of the manager, and of its children that have ended.
    pub fn seconds(&self) -> Result<f64> {
        let fields = process_stat(self.manager).context("the manager has ended")?;
        let mut ticks = 0.0;
        // utime, stime, cutime and cstime.
        for field in 11..15 {
            ticks += fields.get(field).context("too short")?.parse::<f64>()?;
        }
        Ok(ticks / TICKS)
    }
}

fn sample(manager: i32) -> Peak {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if let Some(parent) = parent(pid) {
            parents.insert(pid, parent);
        }
    }
    let is_of = |mut pid: i32| {
        while pid != manager {
            match parents.get(&pid) {
                Some(parent) if *parent != pid => pid = *parent,
                _ => return false,
            }
        }
        true
    };
    let mut sum = Peak::default();
    for pid in parents.keys().copied().filter(|pid| is_of(*pid)) {
        // One that has ended meanwhile has none.
        let Ok(text) = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else { continue };
        let field = |name: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
        };
        sum.resident += field("Rss:") * 1024.0 / 1e6;
        sum.proportional += field("Pss:") * 1024.0 / 1e6;
        sum.processes += 1;
    }
    sum
}

fn parent(pid: i32) -> Option<i32> {
    process_stat(pid)?.get(1)?.parse().ok()
}
