//! Queues: messages that are hidden while somebody works on them, and come again unless they are deleted.

use chrono::Duration;

use crate::{
    ApiError, Tree,
    events::Event,
    queue::{Message, Queue},
    region::Region,
};

/// What a receive gives at most.
const BATCH: usize = 10;
/// For how long a message is hidden unless the receive says otherwise, in seconds.
const HIDDEN: i64 = 30;

fn absent() -> ApiError {
    ApiError::refused("QueueDoesNotExist", "The specified queue does not exist.")
}

impl Region {
    fn queue_url(&self, name: &str) -> String {
        format!("https://sqs.{}.amazonaws.com/{}/{name}", self.scope.region, self.scope.account)
    }

    /// Makes a queue; gives its URL.
    pub(crate) fn put_queue(&mut self, name: &str) -> String {
        self.bus.queues.entry(name.to_owned()).or_default();
        self.queue_url(name)
    }

    /// The queue that a request names, in this scope only.
    fn queue(&mut self, params: &Tree) -> Result<&mut Queue, ApiError> {
        let url = params.text_of("QueueUrl").unwrap_or_default();
        let name = url.rsplit('/').next().unwrap_or_default().to_owned();
        if url != self.queue_url(&name) {
            return Err(absent());
        }
        self.bus.queues.get_mut(&name).ok_or_else(absent)
    }
}

/// A message comes into a queue.
pub(crate) fn arrive(region: &mut Region, queue: &str, body: String) {
    let (id, now) = (region.bus.id(), region.now);
    if let Some(queue) = region.bus.queues.get_mut(queue) {
        queue.messages.push(Message { id, body, visible_at: now, receives: 0, receipt: String::new() });
    }
}

/// `GetQueueUrl`.
pub(crate) fn url(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let name = params.text_of("QueueName").unwrap_or_default();
    if !region.bus.queues.contains_key(name) {
        return Err(absent());
    }
    Ok(Tree::new().with("QueueUrl", region.queue_url(name)))
}

/// `GetQueueAttributes`: how many messages there are.
pub(crate) fn attributes(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let now = region.now;
    let queue = region.queue(params)?;
    let hidden = queue.messages.iter().filter(|message| message.visible_at > now).count();
    let attributes = Tree::new()
        .with("ApproximateNumberOfMessages", queue.messages.len() - hidden)
        .with("ApproximateNumberOfMessagesNotVisible", hidden);
    Ok(Tree::new().with("Attributes", attributes))
}

/// `SendMessage`.
pub(crate) fn send(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    region.queue(params)?;
    let url = params.text_of("QueueUrl").unwrap_or_default();
    let name = url.rsplit('/').next().unwrap_or_default().to_owned();
    arrive(region, &name, params.text_of("MessageBody").unwrap_or_default().to_owned());
    let id = region.bus.queues.get(&name).and_then(|queue| queue.messages.last()).map(|last| last.id.clone());
    Ok(Tree::new().with_opt("MessageId", id))
}

/// `ReceiveMessage`, without the wait: that is the edge's.
pub(crate) fn receive(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let within = |name: &str, least: i64, most: i64, otherwise: i64| {
        let value = params.number_of(name).unwrap_or(otherwise);
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        let words = format!(
            "Value {value} for parameter {name} is invalid. Reason: Must be between {least} and {most}."
        );
        Err(ApiError::refused("InvalidParameterValue", words))
    };
    within("WaitTimeSeconds", 0, 20, 0)?;
    let most = usize::try_from(within("MaxNumberOfMessages", 1, 10, 1)?).unwrap_or(BATCH);
    let hidden = Duration::seconds(within("VisibilityTimeout", 0, 43_200, HIDDEN)?);
    let counts = params.texts_of("MessageSystemAttributeNames");
    let counts = counts.iter().any(|name| name == "All" || name == "ApproximateReceiveCount");
    let now = region.now;
    let mut receipts: Vec<String> = (0..most).map(|_| region.bus.id()).collect();
    let queue = region.queue(params)?;
    let mut messages = Vec::new();
    for message in queue.messages.iter_mut().filter(|message| message.visible_at <= now).take(most) {
        message.visible_at = now + hidden;
        message.receives += 1;
        message.receipt = receipts.pop().unwrap_or_default();
        let mut tree = Tree::new()
            .with("MessageId", &message.id)
            .with("ReceiptHandle", &message.receipt)
            .with("Body", &message.body);
        if counts {
            tree.set("Attributes", Tree::new().with("ApproximateReceiveCount", message.receives));
        }
        messages.push(tree);
    }
    if messages.is_empty() {
        return Ok(Tree::new());
    }
    region.schedule_at(now + hidden, Event::Visible);
    Ok(Tree::new().with("Messages", messages))
}

/// `DeleteMessage`.
pub(crate) fn delete(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    region.queue(params)?.delete(params.text_of("ReceiptHandle").unwrap_or_default());
    Ok(Tree::new())
}

/// `DeleteMessageBatch`.
pub(crate) fn delete_batch(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let entries = params.items_of("Entries");
    if entries.is_empty() || entries.len() > BATCH {
        let (code, words) = if entries.is_empty() {
            ("EmptyBatchRequest", "The batch request doesn't contain any entries.")
        } else {
            ("TooManyEntriesInBatchRequest", "The batch request contains more entries than permissible.")
        };
        return Err(ApiError::refused(code, words));
    }
    let queue = region.queue(params)?;
    for entry in entries {
        queue.delete(entry.text_of("ReceiptHandle").unwrap_or_default());
    }
    let done = entries.iter().map(|entry| Tree::new().with("Id", entry.text_of("Id").unwrap_or_default()));
    Ok(Tree::new().with("Successful", Tree::list(done)).with("Failed", Tree::List(Vec::new())))
}
