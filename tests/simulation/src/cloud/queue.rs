//! The port to a queue of events on the simulator's core.

use std::time::Duration;

use async_trait::async_trait;
use capasg_cloud::{Queue, QueueMessage, Result};
use capasg_fake_aws::{Service, Tree};

use super::SimulatedCloud;

#[async_trait]
impl Queue for SimulatedCloud {
    async fn url(&self, name: &str) -> Result<String> {
        let reply = self.call(Service::Sqs, "GetQueueUrl", Tree::new().with("QueueName", name)).await?;
        Ok(reply.text_of("QueueUrl").unwrap_or_default().to_owned())
    }

    async fn receive(&self, url: &str, _wait: Duration, hidden: Duration) -> Result<Vec<QueueMessage>> {
        let params = Tree::new()
            .with("QueueUrl", url)
            .with("MaxNumberOfMessages", 10)
            .with("VisibilityTimeout", hidden.as_secs())
            .with("MessageSystemAttributeNames", vec!["ApproximateReceiveCount"]);
        let reply = self.call(Service::Sqs, "ReceiveMessage", params).await?;
        let text = |message: &Tree, name: &str| message.text_of(name).unwrap_or_default().to_owned();
        let messages = reply.items_of("Messages").iter().map(|message| QueueMessage {
            id: text(message, "MessageId"),
            receipt: text(message, "ReceiptHandle"),
            receive_count: message
                .at("Attributes.ApproximateReceiveCount")
                .and_then(Tree::text)
                .and_then(|count| count.parse().ok())
                .unwrap_or(1),
            body: text(message, "Body"),
        });
        Ok(messages.collect())
    }

    async fn delete(&self, url: &str, receipts: &[String]) -> Result<()> {
        let entry = |(index, receipt): (usize, &String)| {
            Tree::new().with("Id", index.to_string()).with("ReceiptHandle", receipt)
        };
        let entries = Tree::list(receipts.iter().enumerate().map(entry));
        let params = Tree::new().with("QueueUrl", url).with("Entries", entries);
        self.call(Service::Sqs, "DeleteMessageBatch", params).await.map(|_| ())
    }
}
