//! What access is resolved from and no watch provides, kept for a short time: many pools ask for the same object.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Mutex, PoisonError},
};

use capasg_cloud::Clock;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use super::AccessSnapshot;
use crate::kubernetes::{AccessKey, Result};

/// How long an answer is kept: users wait for what they corrected, and each Cluster is asked for at most this often.
const KEEP: TimeDelta = TimeDelta::seconds(30);
/// At most this many answers are kept.
const MOST: usize = 4096;

/// Answers by question, each with the time at which it was read.
#[derive(Debug)]
struct Answers<T>(Mutex<BTreeMap<String, (DateTime<Utc>, T)>>);

impl<T> Default for Answers<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Answers<T> {
    async fn get(
        &self,
        clock: &dyn Clock,
        question: String,
        read: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let now = clock.now();
        let is_fresh = |at: DateTime<Utc>| now - at < KEEP;
        {
            let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((at, answer)) = known.get(&question)
                && is_fresh(*at)
            {
                return Ok(answer.clone());
            }
        }
        let answer = read.await?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.retain(|_, (at, _)| is_fresh(*at));
        }
        if known.len() < MOST {
            known.insert(question, (now, answer.clone()));
        }
        Ok(answer)
    }
}

/// The kept answers of one process.
#[derive(Debug, Default)]
pub struct AccessCache {
    specs: Answers<Option<Value>>,
    keys: Answers<Option<AccessKey>>,
    permissions: Answers<bool>,
    snapshots: Answers<AccessSnapshot>,
}

impl AccessCache {
    /// The spec of an object.
    ///
    /// # Errors
    /// The read failed.
    pub(super) async fn spec(
        &self,
        clock: &dyn Clock,
        question: String,
        read: impl Future<Output = Result<Option<Value>>>,
    ) -> Result<Option<Value>> {
        self.specs.get(clock, question, read).await
    }

    /// An access key.
    ///
    /// # Errors
    /// The read failed.
    pub(super) async fn key(
        &self,
        clock: &dyn Clock,
        question: String,
        read: impl Future<Output = Result<Option<AccessKey>>>,
    ) -> Result<Option<AccessKey>> {
        self.keys.get(clock, question, read).await
    }

    /// What operators say about a namespace, for a process without caches.
    ///
    /// # Errors
    /// A read failed.
    pub async fn snapshot(
        &self,
        clock: &dyn Clock,
        namespace: &str,
        read: impl Future<Output = Result<AccessSnapshot>>,
    ) -> Result<AccessSnapshot> {
        self.snapshots.get(clock, namespace.to_owned(), read).await
    }

    /// Whether something is permitted.
    ///
    /// # Errors
    /// The review failed.
    pub(super) async fn permission(
        &self,
        clock: &dyn Clock,
        question: String,
        read: impl Future<Output = Result<bool>>,
    ) -> Result<bool> {
        self.permissions.get(clock, question, read).await
    }
}
