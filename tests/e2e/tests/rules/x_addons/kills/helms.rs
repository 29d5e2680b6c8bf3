//! The processes of Helm that run, sampled all the time.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use capasg_environment::Child;
use tokio::{sync::watch, time::timeout};
use tokio_util::task::AbortOnDropHandle;

/// Between two samples.
const PERIOD: Duration = Duration::from_millis(10);

type Sample = Arc<Vec<Child>>;

/// All children in folders below `root`, which is the same for all tests. One thread samples for all of them.
fn samples(root: &Path) -> watch::Receiver<Sample> {
    static SAMPLES: OnceLock<watch::Sender<Sample>> = OnceLock::new();
    let start = || {
        let (sender, root) = (watch::Sender::new(Sample::default()), root.to_owned());
        let samples = sender.clone();
        thread::spawn(move || {
            loop {
                if samples.receiver_count() > 0 {
                    samples.send_replace(Arc::new(Child::at_home_in(&root)));
                }
                thread::sleep(PERIOD);
            }
        });
        sender
    };
    SAMPLES.get_or_init(start).subscribe()
}

#[derive(Debug, Default)]
struct Seen {
    last: Option<Instant>,
    together: Vec<String>,
}

/// What works on one release.
pub struct Helms {
    samples: watch::Receiver<Sample>,
    seen: Arc<Mutex<Seen>>,
    _task: AbortOnDropHandle<()>,
}

impl Helms {
    /// Observes the children of managers, by the folders of their homes: all of them work on the same release.
    pub fn observe(root: &Path, folders: Vec<PathBuf>) -> Self {
        let (seen, samples) = (Arc::<Mutex<Seen>>::default(), samples(root));
        let task = {
            let (seen, mut samples) = (Arc::clone(&seen), samples.clone());
            tokio::spawn(async move {
                while samples.changed().await.is_ok() {
                    let sample = samples.borrow_and_update().clone();
                    let found: Vec<&Child> =
                        folders.iter().flat_map(|folder| within(&sample, folder)).collect();
                    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                    if !found.is_empty() {
                        seen.last = Some(Instant::now());
                    }
                    if found.len() > 1 {
                        seen.together.push(format!("{found:?}"));
                    }
                }
            })
        };
        Self { samples, seen, _task: AbortOnDropHandle::new(task) }
    }

    /// The process that runs for the manager with this folder now.
    pub fn running(&self, folder: &Path) -> Option<Child> {
        let sample = self.samples.borrow().clone();
        within(&sample, folder).find(|child| child.runs()).cloned()
    }

    /// Waits until a process runs for the manager with this folder, with a condition.
    pub async fn appears(
        &self,
        folder: &Path,
        deadline: Duration,
        is: impl Fn(&Child) -> bool,
    ) -> Result<Child> {
        let mut samples = self.samples.clone();
        let found = async {
            loop {
                let sample = samples.borrow_and_update().clone();
                if let Some(child) = within(&sample, folder).find(|child| child.runs() && is(child)) {
                    return Ok(child.clone());
                }
                if samples.changed().await.is_err() {
                    bail!("no more samples");
                }
            }
        };
        timeout(deadline, found)
            .await
            .with_context(|| format!("no Helm in {} within {deadline:?}", folder.display()))?
    }

    /// Waits until no child of the manager with this folder runs any longer, and answers how long that took since `from`.
    pub async fn end(&self, folder: &Path, from: Instant, deadline: Duration) -> Result<Duration> {
        let mut samples = self.samples.clone();
        let ended = async {
            // Not the last sample: a child may have started since.
            while !Child::at_home_in(folder).is_empty() {
                samples.changed().await?;
            }
            anyhow::Ok(from.elapsed())
        };
        let late = || format!("after {deadline:?}, {:?} survive", Child::at_home_in(folder));
        timeout(deadline, ended).await.with_context(late)?
    }

    /// When one was last seen.
    pub fn last_seen(&self) -> Option<Instant> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).last
    }

    /// Whether there was never more than one at a time.
    pub fn were_alone(&self) -> Result<()> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(seen.together.is_empty(), "several processes at once: {:?}", seen.together);
        Ok(())
    }
}

fn within<'a>(sample: &'a [Child], folder: &Path) -> impl Iterator<Item = &'a Child> {
    sample.iter().filter(move |child| child.home.starts_with(folder))
}

/// What Helm was called for, such as `install`. Before the program is executed, the arguments are those of the role that
/// does so.
pub fn call(child: &Child) -> &str {
    let mut arguments = child.arguments.iter().map(String::as_str);
    match arguments.find(|argument| argument.ends_with("/helm")) {
        Some(_) => arguments.next().unwrap_or("helm"),
        None => "start",
    }
}
