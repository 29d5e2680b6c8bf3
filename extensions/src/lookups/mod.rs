//! What gates ask AWS. Each answer is read in the background and kept, so that no answer to core waits for AWS for longer than
//! a fixed time, and so that a hook without an answer continues.

mod access;
mod question;
mod reader;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use capasg_api::identity::IdentityRequest;
use capasg_cloud::Place;
use tokio::{
    sync::{Semaphore, watch},
    time::{Instant, timeout_at},
};

pub use self::{
    access::{Access, NotAllowed},
    question::{Answer, ImageSource, Question, Subject, SubnetFacts},
    reader::InventoryReader,
};

/// How long a hook waits for answers in all.
pub const BUDGET: Duration = Duration::from_secs(2);
/// An answer that is younger is not read again.
const FRESH: Duration = Duration::from_secs(10);
/// An answer that is older is not used any more, if newer ones cannot be read.
const STALE: Duration = Duration::from_hours(1);
/// A read that failed is not repeated for this long.
const AFTER_FAILURE: Duration = Duration::from_secs(30);
/// The most questions that are remembered. One more takes the place of the one that was asked longest ago.
const MOST: usize = 10_000;
/// A question that waits for its turn is worth a later call for this long, while AWS answers others of the place.
const QUEUED: Duration = Duration::from_mins(1);
/// Reads at a time; the rate limit of each place slows them down further.
const AT_ONCE: usize = 16;

/// AWS did not answer. The reader has logged why: errors of AWS differ between two calls, and messages of hooks must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoAnswer;

/// Reads one answer from AWS, whatever time that takes.
#[async_trait]
pub trait Reader: Send + Sync + 'static {
    /// The answer to a question.
    async fn read(&self, question: &Question) -> Result<Answer, NoAnswer>;
}

/// The answers to the questions of one check. A question that is absent has no answer.
pub type Answers = BTreeMap<Question, Answer>;

/// The answers that this replica knows.
#[derive(Clone)]
pub struct Lookups(Arc<Table>);

struct Table {
    reader: Arc<dyn Reader>,
    access: Arc<dyn Access>,
    entries: Mutex<BTreeMap<Question, Entry>>,
    /// When AWS last answered, by place.
    answered: Mutex<BTreeMap<Place, Instant>>,
    turns: Semaphore,
    /// Changes when a read ends.
    ended: watch::Sender<u64>,
}

struct Entry {
    answer: Option<(Answer, Instant)>,
    failed: Option<Instant>,
    reading: bool,
    /// When the last read began.
    began: Instant,
    asked: Instant,
}

impl Entry {
    /// Whether there is nothing to wait for.
    fn is_settled(&self, now: Instant) -> bool {
        !self.reading && (self.is_fresh(now) || self.is_failed(now))
    }

    fn is_fresh(&self, now: Instant) -> bool {
        self.answer.as_ref().is_some_and(|(_, at)| now - *at < FRESH)
    }

    fn is_failed(&self, now: Instant) -> bool {
        self.failed.is_some_and(|at| now - at < AFTER_FAILURE)
    }
}

impl Lookups {
    /// No answer is known yet.
    #[must_use]
    pub fn new(reader: Arc<dyn Reader>, access: Arc<dyn Access>) -> Self {
        let (ended, _) = watch::channel(0);
        let turns = Semaphore::new(AT_ONCE);
        let (entries, answered) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Table { reader, access, entries, answered, turns, ended }))
    }

    /// Where a pool is checked: with its identity in its region.
    ///
    /// # Errors
    /// Why nothing may be asked about the pool, or why that is not known.
    pub async fn place(&self, request: &IdentityRequest, region: &str) -> Result<Place, NotAllowed> {
        self.0.access.place(request, region).await
    }

    /// The answers that are known within [`BUDGET`]. Reads that take longer continue, for the next call.
    pub async fn ask(&self, questions: &BTreeSet<Question>) -> Answers {
        let deadline = Instant::now() + BUDGET;
        let mut ended = self.0.ended.subscribe();
        loop {
            ended.mark_unchanged();
            let mut waits = false;
            for question in questions {
                waits |= self.wants(question);
            }
            if !waits || timeout_at(deadline, ended.changed()).await.is_err() {
                return self.known(questions);
            }
        }
    }

    /// Begins a read unless there is an answer or a read is under way; whether it is worth waiting.
    fn wants(&self, question: &Question) -> bool {
        let now = Instant::now();
        let mut entries = self.0.entries();
        if !make_room(&mut entries, question) {
            return false;
        }
        let new = || Entry { answer: None, failed: None, reading: false, began: now, asked: now };
        let entry = entries.entry(question.clone()).or_insert_with(new);
        entry.asked = now;
        if entry.is_settled(now) {
            return false;
        }
        if !entry.reading {
            (entry.reading, entry.began) = (true, now);
            tokio::spawn(read(Arc::clone(&self.0), question.clone()));
        }
        true
    }

    fn known(&self, questions: &BTreeSet<Question>) -> Answers {
        let now = Instant::now();
        let entries = self.0.entries();
        let answer = |question: &Question| {
            let (answer, at) = entries.get(question)?.answer.as_ref()?;
            (now - *at < STALE).then(|| (question.clone(), answer.clone()))
        };
        questions.iter().filter_map(answer).collect()
    }

    /// The questions that wait for the rate limit of this replica: they were never answered, their reads began less than a
    /// minute ago, and AWS has answered another question of the place since. A later call has their answers.
    pub fn queued<'a>(&self, questions: impl Iterator<Item = &'a Question>) -> BTreeSet<&'a Question> {
        let now = Instant::now();
        let entries = self.0.entries();
        let answered = self.0.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let is_queued = |question: &&Question| {
            let Some(entry) = entries.get(*question) else { return false };
            let is_known = entry.answer.as_ref().is_some_and(|(_, at)| now - *at < STALE);
            let answers = answered.get(question.place()).is_some_and(|at| *at >= entry.began);
            entry.reading && !is_known && answers && now - entry.began < QUEUED
        };
        questions.filter(is_queued).collect()
    }

    /// Forgets what was not asked for so long that its answer is not used any more, with the credentials in it.
    pub fn forget_unused(&self) {
        let now = Instant::now();
        self.0.entries().retain(|_, entry| entry.reading || now - entry.asked < STALE);
        let mut answered = self.0.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.retain(|_, at| now - *at < QUEUED);
    }

    /// How many questions are remembered.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.0.entries().len()
    }
}

impl Table {
    fn entries(&self) -> MutexGuard<'_, BTreeMap<Question, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads one answer; it outlives the hook that asked first.
async fn read(table: Arc<Table>, question: Question) {
    let answer = match table.turns.acquire().await {
        Ok(_turn) => table.reader.read(&question).await,
        Err(_) => Err(NoAnswer),
    };
    let now = Instant::now();
    if answer.is_ok() {
        let mut answered = table.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.insert(question.place().clone(), now);
    }
    if let Some(entry) = table.entries().get_mut(&question) {
        entry.reading = false;
        match answer {
            Ok(answer) => (entry.answer, entry.failed) = (Some((answer, now)), None),
            Err(NoAnswer) => entry.failed = Some(now),
        }
    }
    table.ended.send_modify(|count| *count = count.wrapping_add(1));
}

/// Whether there is room for a question. While all others are being read, there is none: it has no answer.
fn make_room(entries: &mut BTreeMap<Question, Entry>, question: &Question) -> bool {
    if entries.len() < MOST || entries.contains_key(question) {
        return true;
    }
    let settled = entries.iter().filter(|(_, entry)| !entry.reading);
    let oldest = settled.min_by_key(|(_, entry)| entry.asked).map(|(question, _)| question.clone());
    oldest.is_some_and(|oldest| entries.remove(&oldest).is_some())
}
