//! EventBridge: events of what happens here, matched by rules and delivered to queues, best effort.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::{
    Scope,
    autoscaling::{Lifecycle, refresh::RefreshStatus},
    events::Event,
    ids::Ids,
    region::Region,
    sqs::Queue,
    time::{millis, timestamp},
};

/// The queues of a scope and the rules that fill them.
pub(crate) struct Bus {
    /// Of its own: whether anybody listens must not change what else happens.
    ids: Ids,
    pub(crate) queues: BTreeMap<String, Queue>,
    rules: Vec<(String, Value)>,
}

impl Bus {
    pub(crate) fn new(seed: u64, scope: &Scope) -> Self {
        Self {
            ids: Ids::new(seed.rotate_left(32) ^ 0x5eed, scope),
            queues: BTreeMap::new(),
            rules: Vec::new(),
        }
    }

    pub(crate) fn id(&mut self) -> String {
        self.ids.uuid()
    }

    pub(crate) fn put_rule(&mut self, queue: &str, pattern: Value) {
        self.rules.push((queue.to_owned(), pattern));
    }

    pub(crate) fn remove(&mut self, queue: &str) {
        self.queues.remove(queue);
        self.rules.retain(|(name, _)| name != queue);
    }

    pub(crate) fn has_messages(&self, now: DateTime<Utc>) -> bool {
        self.queues.values().any(|queue| queue.has_messages(now))
    }

    pub(crate) fn messages(&self) -> usize {
        self.queues.values().map(Queue::len).sum()
    }
}

/// Whether an event matches a pattern: every member that the pattern has must be one of its values; a value may be a
/// `prefix`. Nothing else of EventBridge's patterns is known, and a pattern that has it matches nothing.
pub(crate) fn matches(pattern: &Value, event: &Value) -> bool {
    match pattern {
        Value::Object(members) => members.iter().all(|(name, wanted)| match event.get(name) {
            Some(found) => matches(wanted, found),
            None => false,
        }),
        Value::Array(values) => values.iter().any(|value| match (value, event) {
            (value, Value::Array(found)) => found.iter().any(|one| matches_one(value, one)),
            (value, found) => matches_one(value, found),
        }),
        _ => false,
    }
}

fn matches_one(value: &Value, found: &Value) -> bool {
    match value.get("prefix").and_then(Value::as_str) {
        Some(prefix) => found.as_str().is_some_and(|found| found.starts_with(prefix)),
        None => value == found,
    }
}

impl Region {
    /// Tells what happened to whoever has a rule for it.
    pub(crate) fn emit(&mut self, source: &str, detail_type: &str, resources: &[String], detail: &Value) {
        if self.bus.rules.is_empty() {
            return;
        }
        let event = json!({
            "version": "0",
            "id": self.bus.id(),
            "detail-type": detail_type,
            "source": source,
            "account": self.scope.account,
            "time": timestamp(self.now),
            "region": self.scope.region,
            "resources": resources,
            "detail": detail,
        });
        let mut queues: Vec<String> = Vec::new();
        for (queue, pattern) in &self.bus.rules {
            // Two rules of one queue are two deliveries, as with EventBridge.
            if matches(pattern, &event) {
                queues.push(queue.clone());
            }
        }
        for queue in queues {
            let draw = |bus: &mut Bus| bus.ids.next() % 100;
            if draw(&mut self.bus) < self.settings.event_lost_percent {
                continue;
            }
            let times = if draw(&mut self.bus) < self.settings.event_twice_percent { 2 } else { 1 };
            for _ in 0..times {
                let jitter = self.bus.ids.next() % (self.settings.event_jitter_millis + 1);
                let at = self.now + millis(self.settings.event_millis + jitter);
                self.schedule_at(at, Event::Delivered(queue.clone(), event.to_string()));
            }
        }
    }

    /// Tells what happened to a machine.
    pub(crate) fn emit_ec2(&mut self, id: &str, detail_type: &str, detail: &Value) {
        let arn = self.arn("ec2", &format!("instance/{id}"));
        self.emit("aws.ec2", detail_type, &[arn], detail);
    }

    /// Tells the new state of a machine.
    pub(crate) fn emit_state(&mut self, id: &str) {
        let Some(state) = self.state.instances.get(id).map(|instance| instance.state.as_str()) else {
            return;
        };
        let detail = json!({"instance-id": id, "state": state});
        self.emit_ec2(id, "EC2 Instance State-change Notification", &detail);
    }

    /// Tells how an activity of a group ended.
    pub(crate) fn emit_activity(&mut self, group: &str, sequence: u64, successful: bool) {
        let Some(owner) = self.state.groups.get(group) else { return };
        let Some(activity) = owner.activities.get(&sequence) else { return };
        let launches = activity.description.starts_with("Launching");
        let instance =
            activity.description.rsplit(": ").next().filter(|id| id.starts_with("i-")).unwrap_or("");
        let detail_type = match (launches, successful) {
            (true, true) => "EC2 Instance Launch Successful",
            (true, false) => "EC2 Instance Launch Unsuccessful",
            (false, true) => "EC2 Instance Terminate Successful",
            (false, false) => "EC2 Instance Terminate Unsuccessful",
        };
        let detail = json!({
            "StatusCode": if successful { "InProgress" } else { "Failed" },
            "Description": activity.description,
            "AutoScalingGroupName": group,
            "ActivityId": activity.id,
            "Details": serde_json::from_str::<Value>(&activity.details).unwrap_or_default(),
            "RequestId": activity.id,
            "StatusMessage": activity.message.clone().unwrap_or_default(),
            "EndTime": activity.end.map(timestamp),
            "EC2InstanceId": instance,
            "StartTime": timestamp(activity.start),
            "Cause": activity.cause,
        });
        let mut resources = vec![owner.arn.clone()];
        if !instance.is_empty() {
            resources.push(self.arn("ec2", &format!("instance/{instance}")));
        }
        self.emit("aws.autoscaling", detail_type, &resources, &detail);
    }

    /// Tells that hooks hold an instance.
    pub(crate) fn emit_actions(&mut self, id: &str) {
        let Some(own) = self.state.instances.get(id).and_then(|instance| instance.group.clone()) else {
            return;
        };
        let Some(arn) = self.state.groups.get(&own.group).map(|group| group.arn.clone()) else { return };
        let launches = own.lifecycle == Lifecycle::PendingWait;
        let (kind, transition, ends) = if launches {
            (
                "EC2 Instance-launch Lifecycle Action",
                crate::autoscaling::hooks::LAUNCHING,
                ("EC2", "AutoScalingGroup"),
            )
        } else {
            (
                "EC2 Instance-terminate Lifecycle Action",
                crate::autoscaling::hooks::TERMINATING,
                ("AutoScalingGroup", "EC2"),
            )
        };
        for action in &own.actions {
            let detail = json!({
                "LifecycleActionToken": action.token,
                "AutoScalingGroupName": own.group,
                "LifecycleHookName": action.hook,
                "EC2InstanceId": id,
                "LifecycleTransition": transition,
                "Origin": ends.0,
                "Destination": ends.1,
            });
            self.emit("aws.autoscaling", kind, std::slice::from_ref(&arn), &detail);
        }
    }

    /// Tells how far an instance refresh is.
    pub(crate) fn emit_refresh(&mut self, group: &str, refresh: &str, status: RefreshStatus) {
        let Some(arn) = self.state.groups.get(group).map(|group| group.arn.clone()) else { return };
        let what = match status {
            RefreshStatus::Pending | RefreshStatus::Cancelling => return,
            RefreshStatus::InProgress => "Started",
            RefreshStatus::Baking => "Started Baking",
            RefreshStatus::RollbackInProgress => "Rollback Started",
            RefreshStatus::Successful => "Succeeded",
            RefreshStatus::Failed => "Failed",
            RefreshStatus::Cancelled => "Cancelled",
            RefreshStatus::RollbackSuccessful => "Rollback Succeeded",
            RefreshStatus::RollbackFailed => "Rollback Failed",
        };
        let detail = json!({"InstanceRefreshId": refresh, "AutoScalingGroupName": group});
        self.emit("aws.autoscaling", &format!("EC2 Auto Scaling Instance Refresh {what}"), &[arn], &detail);
    }
}
