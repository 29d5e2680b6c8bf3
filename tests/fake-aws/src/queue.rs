//! A queue and its messages.

use chrono::{DateTime, Utc};

/// A standard queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) messages: Vec<Message>,
}

#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) body: String,
    pub(crate) visible_at: DateTime<Utc>,
    pub(crate) receives: u32,
    pub(crate) receipt: String,
}

impl Queue {
    pub(crate) fn has_messages(&self, now: DateTime<Utc>) -> bool {
        self.messages.iter().any(|message| message.visible_at <= now)
    }

    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether the receipt was one of this queue's last ones; a message that is gone is no error.
    pub(crate) fn delete(&mut self, receipt: &str) {
        self.messages.retain(|message| message.receipt != receipt);
    }
}
