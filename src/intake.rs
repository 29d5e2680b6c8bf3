//! Bodies of requests whose senders are not known: how many bytes of them are in memory at the same time, and how much memory
//! they take when they are parsed.
//!
//! Small bodies wait for nothing, since the number of connections bounds them. Larger ones share a budget of bytes, so that
//! neither many of them nor slow ones exceed it. What parsing allocates can be many times the size of a body: it is estimated
//! from the number of values in it, and taken from another budget.

mod cost;

use std::{convert::Infallible, future::poll_fn, pin::Pin, sync::Arc, time::Duration};

use axum::body::{Body, Bytes, HttpBody as _};
use futures::stream::unfold;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

pub use self::cost::NotAccepted;
use self::cost::cost;

/// The size in bytes up to which a body waits for nothing.
pub const SMALL: usize = 64 * 1024;
/// The cost in bytes up to which a request does not wait for others that cost more.
const CHEAP: usize = 1024 * 1024;
/// The size in bytes of the parts in which a large answer is sent.
const PART: usize = 16 * 1024;
/// What permits of the semaphores stand for, in bytes.
const UNIT: usize = 1024;

/// How much memory requests may take.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// The largest body, in bytes.
    pub largest: usize,
    /// The bodies larger than [`SMALL`] at the same time, in bytes.
    pub bodies: usize,
    /// What parsing may allocate for all requests at the same time, in bytes, and for one of them. A quarter more is for
    /// requests that cost little.
    pub parsed: usize,
    /// The answers larger than [`SMALL`] that are not sent yet, in bytes.
    pub replies: usize,
}

/// Takes in bodies within a budget.
pub struct Intake {
    budget: Budget,
    bodies: Semaphore,
    costly: Semaphore,
    cheap: Semaphore,
    replies: Arc<Semaphore>,
}

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// It is too large, or incomplete.
    TooLarge,
    /// It did not arrive in time.
    Late,
    /// Too many bodies are read.
    Busy,
}

/// A body that was read.
pub struct Received<'a> {
    /// The bytes.
    pub bytes: Vec<u8>,
    _share: Option<SemaphorePermit<'a>>,
}

impl Intake {
    /// Nothing is in memory yet.
    #[must_use]
    pub fn new(budget: Budget) -> Self {
        Self {
            budget,
            bodies: Semaphore::new(budget.bodies / UNIT),
            costly: Semaphore::new(budget.parsed / UNIT),
            cheap: Semaphore::new(budget.parsed / 4 / UNIT),
            replies: Arc::new(Semaphore::new(budget.replies / UNIT)),
        }
    }

    /// Reads a body of at most `largest` bytes, and of the budget's largest. It waits at most `turn` for its share of the
    /// budget, and the body has to arrive within `within` besides.
    ///
    /// # Errors
    /// If the body is too large, incomplete or too slow, or if it has no share in time.
    pub async fn read(
        &self,
        body: Body,
        largest: usize,
        turn: Duration,
        within: Duration,
    ) -> Result<Received<'_>, Unread> {
        let largest = largest.min(self.budget.largest);
        let declared = body.size_hint().exact().and_then(|size| usize::try_from(size).ok());
        if declared.is_some_and(|size| size > largest) {
            return Err(Unread::TooLarge);
        }
        let mut reading = Reading { body, bytes: Vec::new() };
        let Some(first) =
            timeout(within, reading.until(SMALL, largest)).await.map_err(|_| Unread::Late)??
        else {
            return Ok(Received { bytes: reading.bytes, _share: None });
        };
        // Only what has sent its first bytes takes a share.
        let most = declared.unwrap_or(largest);
        let share = timeout(turn, self.bodies.acquire_many(units(most))).await;
        let share = share.map_err(|_| Unread::Busy)?.map_err(|_| Unread::Busy)?;
        reading.bytes.reserve_exact(most.saturating_sub(reading.bytes.len()));
        reading.bytes.extend_from_slice(&first);
        match timeout(within, reading.until(largest, largest)).await.map_err(|_| Unread::Late)?? {
            None => Ok(Received { bytes: reading.bytes, _share: Some(share) }),
            Some(_) => Err(Unread::TooLarge),
        }
    }

    /// The estimated memory that parsing a body takes.
    ///
    /// # Errors
    /// If the body is not a JSON object, or takes more than one request may.
    pub fn cost(&self, body: &[u8]) -> Result<usize, NotAccepted> {
        cost(body, self.budget.parsed)
    }

    /// Waits until the memory of this cost is free; `None` if it is not in time.
    pub async fn room(&self, cost: usize, within: Duration) -> Option<SemaphorePermit<'_>> {
        let lane = if cost <= CHEAP { &self.cheap } else { &self.costly };
        timeout(within, lane.acquire_many(units(cost))).await.ok()?.ok()
    }

    /// An answer as a body that gives its share of the budget back when it is sent; `None` if it has none in time.
    pub async fn reply(&self, bytes: Vec<u8>, within: Duration) -> Option<Body> {
        if bytes.len() <= SMALL {
            return Some(bytes.into());
        }
        let share = Arc::clone(&self.replies).acquire_many_owned(units(bytes.len()));
        let share = timeout(within, share).await.ok()?.ok()?;
        // The server takes a part when the one before it is sent.
        let parts = unfold((Bytes::from(bytes), share), async |(mut rest, share)| {
            let part = rest.split_to(rest.len().min(PART));
            (!part.is_empty()).then(|| (Ok::<_, Infallible>(part), (rest, share)))
        });
        Some(Body::from_stream(parts))
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

/// A body that arrives.
struct Reading {
    body: Body,
    bytes: Vec<u8>,
}

impl Reading {
    /// Reads to the end, or until the next part would exceed `pause` bytes: this part is returned.
    async fn until(&mut self, pause: usize, largest: usize) -> Result<Option<Bytes>, Unread> {
        while let Some(frame) = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await {
            let Ok(part) = frame.map_err(|_| Unread::TooLarge)?.into_data() else { continue };
            let size = self.bytes.len().saturating_add(part.len());
            if size > largest {
                return Err(Unread::TooLarge);
            }
            if size > pause {
                return Ok(Some(part));
            }
            self.bytes.extend_from_slice(&part);
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
