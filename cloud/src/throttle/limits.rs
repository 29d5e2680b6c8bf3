//! The rates at which one identity and region may call AWS, and how long a call may take.

use std::time::Duration;

/// A token bucket's size and refill.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Calls per second sustained.
    pub per_second: f64,
    /// Calls at once after a pause.
    pub burst: f64,
}

/// Limits of one identity and region. AWS counts per account and region, so other users of the account share
/// what it allows: each default takes half of a documented limit at most ("Request throttling for the
/// Amazon EC2 API").
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// All Auto Scaling calls together: AWS has one shared limit for them and publishes no number.
    /// Default 5 per second, burst 20.
    pub auto_scaling: Rate,
    /// Each describe operation of EC2. Default 10 per second, burst 50 (AWS: 20 and 100).
    pub ec2_read: Rate,
    /// `CreateLaunchTemplate` and the deletions of templates and versions, each.
    /// Default 2.5 per second, burst 25 (AWS: 5 and 50).
    pub ec2_write: Rate,
    /// `CreateLaunchTemplateVersion`.
    /// Default 2.5 per second, burst 50 (AWS: 5 and 100).
    pub ec2_template_version: Rate,
    /// Systems Manager. Default 5 per second, burst 10: a guess well below its default quota of 40 per second.
    pub ssm: Rate,
    /// Service Quotas. Default 2.5 per second, burst 2.5 (AWS: 5 and 5 more).
    pub service_quotas: Rate,
    /// Security Token Service. Default 2 per second, burst 5: one call an hour is what is needed.
    pub sts: Rate,
    /// SQS, each operation. Default 20 per second, burst 50: a standard queue takes nearly any number.
    pub sqs: Rate,
    /// How long a read may take. Default 10 s.
    pub read_timeout: Duration,
    /// How long a write may take, the leader lease permitting. Default 20 s.
    pub write_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let rate = |per_second, burst| Rate { per_second, burst };
        Self {
            auto_scaling: rate(5.0, 20.0),
            ec2_read: rate(10.0, 50.0),
            ec2_write: rate(2.5, 25.0),
            ec2_template_version: rate(2.5, 50.0),
            ssm: rate(5.0, 10.0),
            service_quotas: rate(2.5, 2.5),
            sts: rate(2.0, 5.0),
            sqs: rate(20.0, 50.0),
            read_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(20),
        }
    }
}

impl Limits {
    /// No rate limits, for simulations that run in virtual time; timeouts as by default.
    #[must_use]
    pub fn unlimited() -> Self {
        let rate = Rate { per_second: 1e9, burst: 1e9 };
        Self {
            auto_scaling: rate,
            ec2_read: rate,
            ec2_write: rate,
            ec2_template_version: rate,
            ssm: rate,
            service_quotas: rate,
            sts: rate,
            sqs: rate,
            ..Self::default()
        }
    }

    /// A share of these rates, for one of several processes that use the same account: each has at least one call at once.
    /// The timeouts stay.
    #[must_use]
    pub fn share(&self, share: f64) -> Self {
        let of =
            |rate: Rate| Rate { per_second: rate.per_second * share, burst: (rate.burst * share).max(1.0) };
        Self {
            auto_scaling: of(self.auto_scaling),
            ec2_read: of(self.ec2_read),
            ec2_write: of(self.ec2_write),
            ec2_template_version: of(self.ec2_template_version),
            ssm: of(self.ssm),
            service_quotas: of(self.service_quotas),
            sts: of(self.sts),
            sqs: of(self.sqs),
            ..*self
        }
    }

    /// The limit of a bucket.
    pub(super) fn rate(&self, key: BucketKey) -> Rate {
        match key {
            BucketKey::AutoScaling => self.auto_scaling,
            BucketKey::Ec2("CreateLaunchTemplateVersion") => self.ec2_template_version,
            BucketKey::Ec2(api) if api.starts_with("Describe") => self.ec2_read,
            BucketKey::Ec2(_) => self.ec2_write,
            BucketKey::Ssm => self.ssm,
            BucketKey::ServiceQuotas => self.service_quotas,
            BucketKey::Sts => self.sts,
            BucketKey::Sqs(_) => self.sqs,
        }
    }
}

/// Which calls AWS counts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum BucketKey {
    AutoScaling,
    /// EC2 evaluates each operation for itself.
    Ec2(&'static str),
    Ssm,
    ServiceQuotas,
    Sts,
    Sqs(&'static str),
}

impl BucketKey {
    /// The bucket of an operation. `DeleteTags` is Auto Scaling's here: the port has no EC2 tagging.
    pub(super) fn of(api: &'static str) -> Self {
        match api {
            "CreateLaunchTemplate"
            | "CreateLaunchTemplateVersion"
            | "DeleteLaunchTemplateVersions"
            | "DeleteLaunchTemplate"
            | "DescribeInstanceTypes"
            | "DescribeInstanceTypeOfferings"
            | "DescribeInstances"
            | "DescribeLaunchTemplates"
            | "DescribeLaunchTemplateVersions"
            | "DescribeSubnets"
            | "DescribeSecurityGroups"
            | "DescribeSecurityGroupVpcAssociations"
            | "DescribeImages"
            | "DescribeSnapshots" => Self::Ec2(api),
            "GetParameter" => Self::Ssm,
            "GetServiceQuota" => Self::ServiceQuotas,
            "GetCallerIdentity" => Self::Sts,
            "GetQueueUrl" | "ReceiveMessage" | "DeleteMessageBatch" => Self::Sqs(api),
            _ => Self::AutoScaling,
        }
    }
}
