//! Whose call it is, by its credentials; what each service answers to credentials that are not valid.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::{Caller, Iam};
use crate::{ApiError, Scope, Service, ec2::templates};

impl Iam {
    /// Who makes a call.
    ///
    /// # Errors
    /// What the service answers if the key is not known, the session has ended, or its token is not the key's.
    pub(crate) fn caller(
        &self,
        (scope, service): (&Scope, Service),
        (key, token): (Option<&str>, Option<&str>),
        now: DateTime<Utc>,
    ) -> Result<Caller, ApiError> {
        let key = key.unwrap_or_default();
        if self.deleted.contains(key) {
            return Err(unknown(service));
        }
        let Some(session) = self.sessions.get(key) else {
            let digits = key.strip_prefix("ASIA").and_then(|rest| rest.get(..12));
            if digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())) {
                return Err(unknown(service));
            }
            let user = || templates::caller(scope);
            return Ok(Caller {
                arn: self.users.get(key).cloned().unwrap_or_else(user),
                account: scope.account.clone(),
                id: "AIDASIMULATED00000000".to_owned(),
                role: None,
                is_revoked: false,
                tags: BTreeMap::new(),
                transitive: BTreeSet::new(),
                session_policy: None,
            });
        };
        if token != Some(session.token.as_str()) {
            return Err(unknown(service));
        }
        if session.expires <= now {
            return Err(expired(service));
        }
        Ok(Caller {
            arn: session.arn.clone(),
            account: scope.account.clone(),
            id: format!("AROASIMULATED00000000:{}", session.name),
            role: Some(session.role.clone()),
            is_revoked: session.is_revoked,
            tags: session.tags.clone(),
            transitive: session.transitive.clone(),
            session_policy: session.policy.clone(),
        })
    }
}

/// The answer to an access key that does not exist. SQS speaks JSON but keeps the codes of its query protocol.
fn unknown(service: Service) -> ApiError {
    let words = "The security token included in the request is invalid.";
    match service {
        Service::AutoScaling | Service::Sts | Service::Sqs => {
            ApiError::new(403, "InvalidClientTokenId", words)
        }
        Service::Ec2 => {
            ApiError::new(401, "AuthFailure", "AWS was not able to validate the provided access credentials")
        }
        Service::ServiceQuotas | Service::Ssm => ApiError::refused("UnrecognizedClientException", words),
    }
}

/// The answer to credentials whose time is over; EC2 has a code of its own.
fn expired(service: Service) -> ApiError {
    let words = "The security token included in the request is expired";
    match service {
        Service::AutoScaling | Service::Sts | Service::Sqs => ApiError::new(403, "ExpiredToken", words),
        Service::Ec2 => ApiError::refused("RequestExpired", "Request has expired."),
        Service::ServiceQuotas | Service::Ssm => ApiError::refused("ExpiredTokenException", words),
    }
}
