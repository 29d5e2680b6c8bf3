//! The event queue's port over the SDK's SQS client, which uses AWS JSON 1.0.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use aws_config::{
    SdkConfig, stalled_stream_protection::StalledStreamProtectionConfig, timeout::TimeoutConfig,
};
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, MessageSystemAttributeName};
use capasg_cloud::{CloudError, Queue, QueueMessage, Result};

use crate::call::{CALL_TIMEOUT, call, unreadable};

const URL: &str = "GetQueueUrl";
const RECEIVE: &str = "ReceiveMessage";
const DELETE: &str = "DeleteMessageBatch";

/// What SQS takes at most, in messages.
const BATCH: i32 = 10;

/// The queues of one account and region.
pub(crate) struct AwsQueue(aws_sdk_sqs::Client);

impl AwsQueue {
    /// A client that shares the configuration's HTTP client and credentials cache. A receive waits for its answer for
    /// as long as the caller requests, without a byte meanwhile.
    pub(crate) fn new(config: &SdkConfig) -> Self {
        let timeouts = config.timeout_config().map_or_else(TimeoutConfig::builder, TimeoutConfig::to_builder);
        let timeouts = timeouts.operation_timeout(CALL_TIMEOUT * 3).build();
        let own = aws_sdk_sqs::config::Builder::from(config)
            .timeout_config(timeouts)
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .build();
        Self(aws_sdk_sqs::Client::from_conf(own))
    }
}

impl fmt::Debug for AwsQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsQueue").finish_non_exhaustive()
    }
}

/// Whole seconds, as SQS counts.
fn seconds(span: Duration) -> i32 {
    i32::try_from(span.as_secs()).unwrap_or(i32::MAX)
}

#[async_trait]
impl Queue for AwsQueue {
    async fn url(&self, name: &str) -> Result<String> {
        let reply = call(URL, self.0.get_queue_url().queue_name(name).send()).await?;
        reply.queue_url.ok_or_else(|| unreadable(URL, "QueueUrl"))
    }

    async fn receive(&self, url: &str, wait: Duration, hidden: Duration) -> Result<Vec<QueueMessage>> {
        let request = self
            .0
            .receive_message()
            .queue_url(url)
            .max_number_of_messages(BATCH)
            .wait_time_seconds(seconds(wait))
            .visibility_timeout(seconds(hidden))
            .message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount);
        let reply = call(RECEIVE, request.send()).await?;
        reply.messages.unwrap_or_default().into_iter().map(message).collect()
    }

    async fn delete(&self, url: &str, receipts: &[String]) -> Result<()> {
        let mut request = self.0.delete_message_batch().queue_url(url);
        for (index, receipt) in receipts.iter().enumerate() {
            let entry =
                DeleteMessageBatchRequestEntry::builder().id(index.to_string()).receipt_handle(receipt);
            request = request.entries(
                entry.build().map_err(|_| CloudError::unsendable(DELETE, "an entry is incomplete"))?,
            );
        }
        let reply = call(DELETE, request.send()).await?;
        match reply.failed.first() {
            None => Ok(()),
            Some(failed) => {
                let message = failed.message.as_deref().unwrap_or_default();
                Err(CloudError::answered(
                    DELETE,
                    if failed.sender_fault { 400 } else { 500 },
                    &failed.code,
                    message,
                ))
            }
        }
    }
}

fn message(message: aws_sdk_sqs::types::Message) -> Result<QueueMessage> {
    let received = message
        .attributes
        .as_ref()
        .and_then(|known| known.get(&MessageSystemAttributeName::ApproximateReceiveCount))
        .and_then(|count| count.parse().ok());
    Ok(QueueMessage {
        id: message.message_id.unwrap_or_default(),
        receipt: message.receipt_handle.ok_or_else(|| unreadable(RECEIVE, "ReceiptHandle"))?,
        // One that does not say it must not be given up.
        receive_count: received.unwrap_or(1),
        body: message.body.unwrap_or_default(),
    })
}
