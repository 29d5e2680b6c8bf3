//! Who calls what: the account and region of a call, and the service it is for.

use serde::{Deserialize, Serialize};

/// The account of credentials whose access key names none.
pub const DEFAULT_ACCOUNT: &str = "123456789012";

/// An account in a region; everything the simulator keeps is kept per scope.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Scope {
    /// Twelve digits.
    pub account: String,
    /// For example `eu-west-1`.
    pub region: String,
}

impl Scope {
    /// The default account in a region.
    #[must_use]
    pub fn region(region: &str) -> Self {
        Self { account: DEFAULT_ACCOUNT.to_owned(), region: region.to_owned() }
    }

    /// Any account in a region.
    #[must_use]
    pub fn account(account: &str, region: &str) -> Self {
        Self { account: account.to_owned(), region: region.to_owned() }
    }

    /// The scope of credentials: an access key `AKIA` (or `ASIA`) followed by twelve digits names the account,
    /// any other belongs to [`DEFAULT_ACCOUNT`].
    #[must_use]
    pub fn of_access_key(access_key: &str, region: &str) -> Self {
        let digits = access_key
            .strip_prefix("AKIA")
            .or_else(|| access_key.strip_prefix("ASIA"))
            .and_then(|rest| rest.get(..12))
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        Self::account(digits.unwrap_or(DEFAULT_ACCOUNT), region)
    }

    /// The ARN partition of the region.
    #[must_use]
    pub fn partition(&self) -> &'static str {
        if self.region.starts_with("cn-") {
            "aws-cn"
        } else if self.region.starts_with("us-gov-") {
            "aws-us-gov"
        } else {
            "aws"
        }
    }
}

/// An API of the simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// Amazon EC2 Auto Scaling, 2011-01-01.
    AutoScaling,
    /// Amazon EC2, 2016-11-15.
    Ec2,
    /// Service Quotas, 2019-06-24.
    ServiceQuotas,
    /// Systems Manager, 2014-11-06.
    Ssm,
    /// Simple Queue Service, 2012-11-05.
    Sqs,
    /// Security Token Service, 2011-06-15.
    Sts,
}

impl Service {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::AutoScaling, Self::Ec2, Self::ServiceQuotas, Self::Ssm, Self::Sqs, Self::Sts];

    /// The name in a signature's credential scope.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AutoScaling => "autoscaling",
            Self::Ec2 => "ec2",
            Self::ServiceQuotas => "servicequotas",
            Self::Ssm => "ssm",
            Self::Sqs => "sqs",
            Self::Sts => "sts",
        }
    }

    /// Whether it speaks JSON, not query and XML.
    #[must_use]
    pub fn speaks_json(self) -> bool {
        matches!(self, Self::ServiceQuotas | Self::Ssm | Self::Sqs)
    }

    /// The service with that name in a credential scope.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|service| service.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_key_may_name_its_account() {
        assert_eq!(Scope::of_access_key("AKIA999988887777TEST", "eu-west-1").account, "999988887777");
        assert_eq!(Scope::of_access_key("AKIAIOSFODNN7EXAMPLE", "eu-west-1").account, DEFAULT_ACCOUNT);
        assert_eq!(Scope::of_access_key("test", "eu-west-1").account, DEFAULT_ACCOUNT);
    }
}
