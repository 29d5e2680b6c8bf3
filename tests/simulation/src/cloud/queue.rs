//! The port to a queue of events on the simulator's core.

use std::time::Duration;

use async_trait::async_trait;
use capasg_cloud::{CloudError, Queue, QueueMessage, Result};
use capasg_fake_aws::{Service, Tree};

use super::{SimulatedCloud, replies, requests};

#[async_trait]
impl Queue for SimulatedCloud {
    async fn url(&self, name: &str) -> Result<String> {
        let api = "GetQueueUrl";
        let reply = self.call(Service::Sqs, api, Tree::new().with("QueueName", name)).await?;
        replies::text(api, &reply, "QueueUrl")
    }

    async fn receive(&self, url: &str, wait: Duration, hidden: Duration) -> Result<Vec<QueueMessage>> {
        let api = "ReceiveMessage";
        let params = Tree::new()
            .with("QueueUrl", url)
            .with("MaxNumberOfMessages", 10)
            .with("WaitTimeSeconds", wait.as_secs())
            .with("VisibilityTimeout", hidden.as_secs())
            .with("MessageSystemAttributeNames", vec!["ApproximateReceiveCount"]);
        let reply = self.call(Service::Sqs, api, params).await?;
        let text = |message: &Tree, name: &str| message.text_of(name).unwrap_or_default().to_owned();
        let messages = reply.items_of("Messages").iter().map(|message| {
            Ok(QueueMessage {
                id: text(message, "MessageId"),
                receipt: replies::text(api, message, "ReceiptHandle")?,
                receive_count: message
                    .at("Attributes.ApproximateReceiveCount")
                    .and_then(Tree::text)
                    .and_then(|count| count.parse().ok())
                    .unwrap_or(1),
                body: text(message, "Body"),
            })
        });
        messages.collect()
    }

    async fn delete(&self, url: &str, receipts: &[String]) -> Result<()> {
        let entry = |(index, receipt): (usize, &String)| {
            Tree::new().with("Id", index.to_string()).with("ReceiptHandle", receipt)
        };
        let api = "DeleteMessageBatch";
        let entries = requests::some(receipts.iter().enumerate().map(entry));
        let params = Tree::new().with("QueueUrl", url).with_opt("Entries", entries);
        let reply = self.call(Service::Sqs, api, params).await?;
        match reply.items_of("Failed").first() {
            None => Ok(()),
            Some(failed) => {
                let status = if failed.flag_of("SenderFault") == Some(true) { 400 } else { 500 };
                let text = |name: &str| failed.text_of(name).unwrap_or_default();
                Err(CloudError::answered(api, status, text("Code"), text("Message")))
            }
        }
    }
}
