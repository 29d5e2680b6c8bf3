//! The port to an event queue: what the feed uses of SQS.

use std::time::Duration;

use async_trait::async_trait;

use crate::Result;

/// How a user names the event queue of a region.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueueName {
    /// By its name, in the credentials' account.
    Name(String),
    /// By its URL.
    Url(String),
}

/// One message.
#[derive(Clone, PartialEq, Eq)]
pub struct QueueMessage {
    /// `MessageId`, for logs.
    pub id: String,
    /// `ReceiptHandle`: deletes the message as long as it was not received again.
    pub receipt: String,
    /// How often it was received, this time included (`ApproximateReceiveCount`).
    pub receive_count: u32,
    /// The body. Never logged: its sender is not known.
    pub body: String,
}

impl std::fmt::Debug for QueueMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { id, receive_count, .. } = self;
        f.debug_struct("QueueMessage")
            .field("id", id)
            .field("receive_count", receive_count)
            .finish_non_exhaustive()
    }
}

/// The queues of one account and region. As in [`crate::Cloud`], one method call is one AWS call.
#[async_trait]
pub trait Queue: Send + Sync + 'static {
    /// `GetQueueUrl` of a queue in the credentials' account.
    async fn url(&self, name: &str) -> Result<String>;

    /// `ReceiveMessage` of at most ten messages, which are hidden from other receivers for `hidden`. If there are none, it
    /// waits for one as long as `wait`, whole seconds up to 20.
    async fn receive(&self, url: &str, wait: Duration, hidden: Duration) -> Result<Vec<QueueMessage>>;

    /// `DeleteMessageBatch` of at most ten messages by their receipts. One that is not deleted is delivered again.
    async fn delete(&self, url: &str, receipts: &[String]) -> Result<()>;
}
