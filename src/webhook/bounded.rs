//! Reads that many requests share: a limited number reaches the API server, and the others get what was read last.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use tokio::time::Instant;

use crate::rate::Rate;

/// Lists of all objects of a kind: at once, and each second.
pub(super) const LISTS: (u16, u16) = (10, 1);
/// Reads of one object: at once, and each second.
pub(super) const READS: (u16, u16) = (50, 10);
/// How old an answer may be where a newer one would exceed the rate.
const OLDEST: Duration = Duration::from_mins(1);
/// The most objects of a kind that are kept.
const MOST: usize = 1024;

/// All objects of a kind, and when they began to be read.
pub(super) struct Listed<T> {
    lists: Rate,
    last: tokio::sync::Mutex<Option<(Instant, Arc<Vec<T>>)>>,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { lists: Rate::new(LISTS.0, LISTS.1), last: tokio::sync::Mutex::default() }
    }
}

impl<T> Listed<T> {
    /// Reads them, or answers what another request read since this one asked, or lately.
    ///
    /// # Errors
    /// The read fails, or would exceed the rate while nothing that is recent enough was read.
    pub async fn get(&self, read: impl Future<Output = Result<Vec<T>>>) -> Result<Arc<Vec<T>>> {
        let asked = Instant::now();
        // One list at a time; those who wait for it meanwhile take it, if it began after they asked.
        let mut last = self.last.lock().await;
        let is_new = last.as_ref().is_some_and(|(at, _)| *at >= asked);
        if !is_new && self.lists.take() {
            let at = Instant::now();
            *last = Some((at, Arc::new(read.await?)));
        }
        match &*last {
            Some((at, all)) if at.elapsed() < OLDEST => Ok(Arc::clone(all)),
            _ => bail!("the objects are listed too often"),
        }
    }
}

/// Single objects of a kind by name, and when they began to be read.
pub(super) struct Recent<T> {
    reads: Rate,
    known: Mutex<BTreeMap<String, (Instant, Arc<T>)>>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { reads: Rate::new(READS.0, READS.1), known: Mutex::default() }
    }
}

impl<T> Recent<T> {
    /// Reads one, or answers what was read lately.
    ///
    /// # Errors
    /// The read fails, or would exceed the rate while it was not read lately.
    pub async fn get(
        &self,
        name: &str,
        read: impl Future<Output = Result<Option<T>>>,
    ) -> Result<Option<Arc<T>>> {
        let is_recent = |at: Instant| at.elapsed() < OLDEST;
        if !self.reads.take() {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let (_, found) =
                known.get(name).filter(|(at, _)| is_recent(*at)).context("too many objects are read")?;
            return Ok(Some(Arc::clone(found)));
        }
        let at = Instant::now();
        let found = read.await?.map(Arc::new);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(name);
        if known.len() >= MOST {
            known.retain(|_, (at, _)| is_recent(*at));
        }
        if let Some(found) = found.as_ref().filter(|_| known.len() < MOST) {
            known.insert(name.to_owned(), (at, Arc::clone(found)));
        }
        Ok(found)
    }
}
