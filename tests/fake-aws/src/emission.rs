//! Events of what happens in a region, as AWS services send them to EventBridge, delivered best effort.

use serde_json::{Value, json};

use crate::{
    autoscaling::{Lifecycle, hooks, refresh::RefreshStatus},
    bus::{Bus, matches},
    events::Event,
    region::Region,
    time::{millis, timestamp},
};

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
            ("EC2 Instance-launch Lifecycle Action", hooks::LAUNCHING, ("EC2", "AutoScalingGroup"))
        } else {
            ("EC2 Instance-terminate Lifecycle Action", hooks::TERMINATING, ("AutoScalingGroup", "EC2"))
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
