//! What happens in a region as time passes.

use chrono::{DateTime, Utc};

use crate::{autoscaling, call, ec2, events::Event, operations, region::Region, sqs};

impl Region {
    /// Lets everything happen that is due by `to`.
    pub(crate) fn advance(&mut self, to: DateTime<Utc>) {
        while let Some((at, event)) = self.queue.pop(to) {
            self.now = self.now.max(at);
            self.remember();
            self.happen(event);
        }
        self.now = self.now.max(to);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Tick(group) => autoscaling::capacity::tick(self, &group),
            Event::Rebalance(group) => autoscaling::rebalance::look(self, &group),
            Event::Refresh(group, id) => autoscaling::refresh_run::step(self, &group, &id),
            Event::Started(id) => autoscaling::launches::started(self, &id),
            Event::InService(id) => autoscaling::launches::in_service(self, &id),
            Event::TerminatingStep(id) => autoscaling::ends::step(self, &id),
            Event::HookDeadline(id, token) => autoscaling::hook_actions::deadline(self, &id, &token),
            Event::Ended(id) => {
                ec2::instances::ended(self, &id);
                autoscaling::ends::machine_ended(self, &id);
            }
            Event::Stopped(id) => ec2::instances::stopped(self, &id),
            Event::Leave(id) => autoscaling::ends::leave(self, &id),
            Event::Forget(id) => ec2::instances::forget(self, &id),
            Event::HealthCheck(id) => autoscaling::health::check(self, &id),
            Event::Replace(id) => autoscaling::health::replace(self, &id),
            Event::AtRisk(id) => autoscaling::replacements::at_risk(self, &id),
            Event::Standby(id) => autoscaling::standby::reached(self, &id),
            Event::Detached(id) => autoscaling::standby::detached(self, &id),
            Event::Interrupted(id) => ec2::instances::shut_down(self, &id),
            Event::Deleted(group) => autoscaling::groups::vanish(self, &group),
            Event::Delivered(queue, body) => sqs::arrive(self, &queue, body),
            Event::Visible => {}
            Event::Late(service, action, by, params) => {
                if let Some(operation) = operations::find(service, action) {
                    // Nobody is left to hear the outcome.
                    let _ = call::change(self, operation, &params, by);
                }
            }
        }
    }
}
