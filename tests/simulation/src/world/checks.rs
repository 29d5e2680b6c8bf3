//! Rules that must hold after every action of every run.

use anyhow::{Result, bail};
use capasg_api::names::{annotations, tags};
use capasg_fake_aws::Outcome;
use kube::ResourceExt;

use super::{Pool, World};

impl World {
    /// Checks the rules.
    pub(super) fn watch(&mut self) -> Result<()> {
        if !self.watchdog.on {
            return Ok(());
        }
        let mark = self.mark();
        if mark != self.watchdog.seen_calls {
            for pool in self.pools.clone() {
                self.desired_never_too_low(&pool)?;
            }
            self.ends_are_right()?;
            self.nothing_is_denied()?;
            self.watchdog.seen_calls = mark;
        }
        if let Some(breach) = self.core.state().breaches.first() {
            bail!("a breach of the contract: {breach}\n{}", self.describe());
        }
        Ok(())
    }

    /// Desired capacity never falls below what is asked for while the pool is to exist.
    fn desired_never_too_low(&mut self, pool: &Pool) -> Result<()> {
        let Some(group) = self.group(pool) else {
            self.watchdog.desired.remove(&pool.key.name);
            return Ok(());
        };
        let before = self.watchdog.desired.insert(pool.key.name.clone(), group.desired);
        let deleting = self.pool(pool).is_none_or(|pool| pool.metadata.deletion_timestamp.is_some());
        let Some(owner) = self.machine_pool(pool).filter(|_| !deleting) else { return Ok(()) };
        let object = self.pool(pool);
        let id = object.as_ref().and_then(|pool| pool.annotations().get(annotations::OWNER_ID));
        if group.tags.get(tags::OWNER_ID) != id {
            return Ok(());
        }
        // Somebody else may shrink the group as they like, up to the moment at which it is taken back.
        let theirs = object.as_ref().and_then(|pool| pool.status.as_ref()?.replicas_managed_by.as_ref());
        if owner.replicas_managed_by().is_some() || theirs.is_some() {
            return Ok(());
        }
        // A group that somebody deletes has no desired capacity any more.
        let goes = owner.is_deleting() || group.status.is_some();
        if goes || before.is_none_or(|before| group.desired >= before) {
            return Ok(());
        }
        let least = self.watchdog.least(&pool.key.name, owner.replicas(), self.now());
        if group.desired < least {
            bail!(
                "desired capacity fell to {} although {least} are asked for\n{}",
                group.desired,
                self.describe()
            );
        }
        Ok(())
    }

    /// Each end of ours concerns an instance that is drained, and no instance shrinks the pool twice.
    fn ends_are_right(&mut self) -> Result<()> {
        let calls = self.calls_since(self.watchdog.seen_calls, Some("TerminateInstanceInAutoScalingGroup"));
        for call in calls {
            // A lost call may be repeated; whether it shrank the pool twice shows in desired capacity.
            if call.outcome != Outcome::Ok {
                continue;
            }
            let shrinks = call.params["ShouldDecrementDesiredCapacity"] == "true";
            for id in &call.instances {
                if self.watchdog.ended.insert(id.clone(), shrinks) == Some(true) && shrinks {
                    bail!("{id} shrank the pool twice\n{}", self.describe());
                }
                let named = |object: &str| object.ends_with(id.as_str());
                let drained = self.core.state().drained.iter().any(|(machine, _)| named(machine));
                let joined = self
                    .api
                    .state()
                    .machines
                    .all()
                    .iter()
                    .any(|(key, machine)| named(&key.name) && machine.has_node());
                if joined && !drained && !self.watchdog.undrained.iter().any(|object| named(object)) {
                    bail!("{id} was ended before its Machine was drained\n{}", self.describe());
                }
            }
        }
        Ok(())
    }

    /// What must hold at the end of every run.
    ///
    /// # Errors
    /// If bootstrap data shows anywhere.
    pub fn finish(&self) -> Result<()> {
        let leaks = self.leaks();
        if !leaks.is_empty() {
            bail!("bootstrap data shows in {leaks:?}");
        }
        Ok(())
    }
}
