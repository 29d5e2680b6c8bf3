//! When core, Helm and the test wrote what, from the audit logs of API servers.

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::TOPOLOGY;
use capasg_environment::Write;
use chrono::{DateTime, Utc};

use super::say;

/// The writes that one API server accepted, oldest first.
pub struct Audit(Vec<Write>);

impl Audit {
    /// Those of a namespace that were kept.
    pub fn of(writes: Vec<Write>, namespace: &str) -> Self {
        let kept = |write: &Write| write.namespace == namespace && write.code < 300 && !write.dry_run;
        Self(writes.into_iter().filter(kept).collect())
    }

    /// The last write of the topology controller to the only object of a kind before its effect was seen.
    pub fn applied(&self, resource: &str, seen: DateTime<Utc>) -> Result<DateTime<Utc>> {
        let is = |write: &&Write| {
            write.manager == TOPOLOGY && write.resource == resource && write.received <= seen
        };
        let last = self.0.iter().rfind(is);
        last.map(|write| write.received).with_context(|| format!("core wrote no {resource}"))
    }

    /// When Helm began with a revision.
    pub fn begun(&self, release: &str, revision: i64) -> Result<DateTime<Utc>> {
        self.secret(release, revision, 0).map(|write| write.received)
    }

    /// When Helm had recorded that a revision is deployed.
    pub fn deployed(&self, release: &str, revision: i64) -> Result<DateTime<Utc>> {
        self.secret(release, revision, 1).map(|write| write.at)
    }

    /// Helm creates the Secret of a revision, and writes it again when the revision is deployed.
    fn secret(&self, release: &str, revision: i64, number: usize) -> Result<&Write> {
        let name = format!("sh.helm.release.v1.{release}.v{revision}");
        let mut writes = self.0.iter().filter(|write| write.resource == "secrets" && write.name == name);
        writes.nth(number).with_context(|| format!("no write {number} of {name}"))
    }

    /// The first deletion of an object of a kind whose name begins like this.
    pub fn deleted(&self, resource: &str, beginning: &str) -> Result<DateTime<Utc>> {
        let is = |write: &&Write| {
            write.verb == "delete" && write.resource == resource && write.name.starts_with(beginning)
        };
        let first = self.0.iter().find(is);
        first.map(|write| write.received).with_context(|| format!("no {resource} {beginning} was deleted"))
    }

    /// The last write to an object of a kind whose name begins like this: it removes the last finalizer.
    pub fn gone(&self, resource: &str, beginning: &str) -> Result<DateTime<Utc>> {
        let is = |write: &&Write| write.resource == resource && write.name.starts_with(beginning);
        let last = self.0.iter().rfind(is);
        last.map(|write| write.received).with_context(|| format!("nothing wrote {resource} {beginning}"))
    }
}

/// Prints moments, and checks their order.
pub fn in_order(moments: &[(String, DateTime<Utc>)]) -> Result<()> {
    for (what, at) in moments {
        say(&format!("{} {what}", at.format("%H:%M:%S%.3f")))?;
    }
    for pair in moments.windows(2) {
        let [(earlier, from), (later, to)] = pair else { continue };
        ensure!(from < to, "{later} ({to}) before: {earlier} ({from})");
    }
    Ok(())
}
