//! Calls to an event queue: rate-limited, timed and counted like all others. They change nothing in the cloud, but only the
//! leader may delete a message.

use std::time::Duration;

use crate::{Priority, Queue, QueueMessage, Result, gateway::Gateway};

const DELETE: &str = "DeleteMessageBatch";

impl Gateway {
    /// The URL of a queue by its name.
    ///
    /// # Errors
    /// As the port.
    pub(crate) async fn queue_url(&self, queue: &dyn Queue, name: &str) -> Result<String> {
        let permit = self.permit("GetQueueUrl", Priority::Read).await;
        self.read(permit, queue.url(name)).await
    }

    /// At most ten messages, after at most `wait`.
    ///
    /// # Errors
    /// As the port.
    pub(crate) async fn receive(
        &self,
        queue: &dyn Queue,
        url: &str,
        wait: Duration,
        hidden: Duration,
    ) -> Result<Vec<QueueMessage>> {
        let permit = self.permit("ReceiveMessage", Priority::Read).await;
        let timeout = self.limits().read_timeout + wait;
        self.send(permit, false, timeout, queue.receive(url, wait, hidden)).await
    }

    /// Deletes at most ten messages, while this process leads: its successor has not seen them.
    ///
    /// # Errors
    /// [`crate::ErrorClass::NotLeading`] if nothing was sent, else as the port.
    pub(crate) async fn delete_messages(
        &self,
        queue: &dyn Queue,
        url: &str,
        receipts: &[String],
    ) -> Result<()> {
        let permit = self.permit(DELETE, Priority::Read).await;
        let timeout = self.limits().read_timeout.min(self.time_left(DELETE)?);
        self.send(permit, false, timeout, queue.delete(url, receipts)).await
    }
}
