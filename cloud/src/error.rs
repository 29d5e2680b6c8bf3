//! Errors of the cloud and their classes: each class has one retry rule.

use std::fmt;

/// The result of a cloud call.
pub type Result<T, E = CloudError> = std::result::Result<T, E>;

/// The code of an error for which no answer arrived in time.
const TIMEOUT: &str = "Timeout";

/// The code of a request that cannot be sent.
const UNSENDABLE: &str = "InvalidRequest";

/// What kind of failure it is; decides how the call is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorClass {
    /// The shared rate limit of the account and region: the bucket slows down for all calls.
    Throttled,
    /// A transient fault of AWS or of the network: backoff per object.
    Transient,
    /// Credentials or permissions: reported in a condition, slow backoff.
    Denied,
    /// AWS rejects the request: reported in a condition, slow backoff, retried at once when a user changes the spec.
    Invalid,
    /// A quota of the account: reported in a condition, slow backoff.
    Quota,
    /// AWS has no capacity of the requested kind: reported in a condition, slow backoff.
    Capacity,
    /// The named resource does not exist.
    NotFound,
    /// Another operation is in progress (already exists, in progress, pending delete): requeue soon.
    Conflict,
    /// This process does not hold the lease: nothing was sent.
    NotLeading,
}

impl ErrorClass {
    /// The bounded label of metrics, events and condition reasons.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Throttled => "Throttled",
            Self::Transient => "Transient",
            Self::Denied => "AccessDenied",
            Self::Invalid => "Rejected",
            Self::Quota => "QuotaExceeded",
            Self::Capacity => "InsufficientCapacity",
            Self::NotFound => "NotFound",
            Self::Conflict => "Conflict",
            Self::NotLeading => "NotLeading",
        }
    }

    /// Whether only a user (or time, measured in minutes) can fix it.
    #[must_use]
    pub fn is_permanent(self) -> bool {
        matches!(self, Self::Denied | Self::Invalid | Self::Quota | Self::Capacity)
    }
}

/// What a rejected call is about, as far as AWS's message says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorSubject {
    /// A subnet.
    Subnet,
    /// Anything else.
    Other,
}

/// A failed cloud call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudError {
    /// The AWS operation, for example `CreateAutoScalingGroup`.
    pub api: &'static str,
    /// How to continue.
    pub class: ErrorClass,
    /// AWS's error code, or a code of ours for failures without an answer (`Timeout`, `Network`).
    pub code: String,
    /// AWS's message, without request ids.
    pub message: String,
    /// Whether the call may have taken effect although no answer arrived: it must not be repeated blindly.
    pub outcome_unknown: bool,
    /// AWS's request ID, for the log of the gateway, which removes it: two answers to the same mistake are equal.
    pub request_id: Option<String>,
}

impl CloudError {
    /// An error that AWS answered with.
    #[must_use]
    pub fn answered(api: &'static str, status: u16, code: &str, message: &str) -> Self {
        Self {
            api,
            class: classify(status, code, message),
            code: code.to_owned(),
            message: message.trim().to_owned(),
            outcome_unknown: false,
            request_id: None,
        }
    }

    /// No answer arrived: the network or a timeout.
    #[must_use]
    pub fn unanswered(api: &'static str, code: &str, message: &str) -> Self {
        Self {
            api,
            class: ErrorClass::Transient,
            code: code.to_owned(),
            message: message.to_owned(),
            outcome_unknown: true,
            request_id: None,
        }
    }

    /// No answer arrived in time.
    #[must_use]
    pub fn timed_out(api: &'static str, message: &str) -> Self {
        Self::unanswered(api, TIMEOUT, message)
    }

    /// The request cannot be sent as it is: no call was made.
    #[must_use]
    pub fn unsendable(api: &'static str, reason: &str) -> Self {
        Self {
            api,
            class: ErrorClass::Invalid,
            code: UNSENDABLE.to_owned(),
            message: reason.to_owned(),
            outcome_unknown: false,
            request_id: None,
        }
    }

    /// Whether no answer arrived for as long as a call may take: other calls of the operation would take as long.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.outcome_unknown && self.code == TIMEOUT
    }

    /// Whether the request could not be sent: AWS did not reject it.
    #[must_use]
    pub fn is_unsendable(&self) -> bool {
        self.class == ErrorClass::Invalid && self.code == UNSENDABLE
    }

    /// What the call is about by AWS's message.
    #[must_use]
    pub fn subject(&self) -> ErrorSubject {
        if self.message.to_ascii_lowercase().contains("subnet") {
            ErrorSubject::Subnet
        } else {
            ErrorSubject::Other
        }
    }

    /// Nothing was sent, since this process does not hold the lease.
    #[must_use]
    pub fn not_leading(api: &'static str) -> Self {
        Self {
            api,
            class: ErrorClass::NotLeading,
            code: "NotLeading".to_owned(),
            message: "this process does not hold the leader lease".to_owned(),
            outcome_unknown: false,
            request_id: None,
        }
    }
}

impl fmt::Display for CloudError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.api, self.code, self.message)
    }
}

impl std::error::Error for CloudError {}

/// The class of an error that AWS answered with ("Error codes for the Amazon EC2 API"; "Common errors" of the
/// Auto Scaling API reference).
fn classify(status: u16, code: &str, message: &str) -> ErrorClass {
    match code {
        "Throttling"
        | "ThrottlingException"
        | "ThrottledException"
        | "RequestLimitExceeded"
        | "RequestThrottled"
        | "RequestThrottledException"
        | "TooManyRequestsException"
        | "EC2ThrottledException"
        | "SlowDown" => ErrorClass::Throttled,
        "AccessDenied"
        | "AccessDeniedException"
        | "UnauthorizedOperation"
        | "AuthFailure"
        | "InvalidClientTokenId"
        | "SignatureDoesNotMatch"
        | "ExpiredToken"
        | "ExpiredTokenException"
        | "RequestExpired"
        | "UnrecognizedClientException"
        | "OptInRequired"
        | "MissingAuthenticationToken" => ErrorClass::Denied,
        "LimitExceeded" | "VcpuLimitExceeded" | "InstanceLimitExceeded" | "MaxSpotInstanceCountExceeded" => {
            ErrorClass::Quota
        }
        "InsufficientInstanceCapacity" | "UnfulfillableCapacity" | "InsufficientCapacity" => {
            ErrorClass::Capacity
        }
        "AlreadyExists"
        | "ScalingActivityInProgress"
        | "ResourceInUse"
        | "ResourceContention"
        | "InstanceRefreshInProgress"
        | "IncorrectState" => ErrorClass::Conflict,
        "ParameterNotFound" | "QueueDoesNotExist" | "NoSuchResourceException" => ErrorClass::NotFound,
        _ if code.contains("NonExistentQueue") => ErrorClass::NotFound,
        _ if code.contains("AlreadyExists") => ErrorClass::Conflict,
        _ if code.contains("LimitExceeded") => ErrorClass::Quota,
        _ if code.contains("NotFound") => ErrorClass::NotFound,
        "ValidationError" => classify_validation(message),
        _ if status == 429 => ErrorClass::Throttled,
        _ if status >= 500 => ErrorClass::Transient,
        _ => ErrorClass::Invalid,
    }
}

/// Auto Scaling answers `ValidationError` for almost everything; only the text tells them apart.
fn classify_validation(message: &str) -> ErrorClass {
    const ABSENT: [&str; 4] = [
        "AutoScalingGroup name not found",
        "Instance Id not found",
        "No active Lifecycle Action found",
        "No Lifecycle Hook found",
    ];
    if ABSENT.iter().any(|text| message.contains(text)) {
        ErrorClass::NotFound
    } else if message.contains("pending delete") || message.contains("is not in InService") {
        ErrorClass::Conflict
    } else if message.contains("not authorized") {
        // Of the launch template or its instance profile, in EC2's words.
        ErrorClass::Denied
    } else {
        ErrorClass::Invalid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_about_a_subnet_is_told_from_others() {
        let subject = |message| CloudError::answered("Test", 400, "ValidationError", message).subject();
        let text = "The subnet ID 'subnet-0a1b2c3d' does not exist";
        assert_eq!(subject(text), ErrorSubject::Subnet);
        assert_eq!(subject("You must use a valid Subnet"), ErrorSubject::Subnet);
        assert_eq!(subject("The security group sg-0a1b2c3d does not exist"), ErrorSubject::Other);
    }

    #[test]
    fn a_hook_that_does_not_exist_is_not_found_rather_than_invalid() {
        let text = "No Lifecycle Hook found with name: capasg-drain for group: web";
        let error = CloudError::answered("DeleteLifecycleHook", 400, "ValidationError", text);
        assert_eq!(error.class, ErrorClass::NotFound);
    }

    #[test]
    fn every_documented_code_has_its_class() {
        let class = |status, code, message| CloudError::answered("Test", status, code, message).class;
        assert_eq!(class(400, "Throttling", "Rate exceeded"), ErrorClass::Throttled);
        assert_eq!(class(503, "RequestLimitExceeded", ""), ErrorClass::Throttled);
        assert_eq!(class(403, "UnauthorizedOperation", ""), ErrorClass::Denied);
        assert_eq!(class(500, "InternalFailure", ""), ErrorClass::Transient);
        assert_eq!(class(500, "ResourceContention", ""), ErrorClass::Conflict);
        assert_eq!(class(400, "InvalidLaunchTemplateId.NotFound", ""), ErrorClass::NotFound);
        assert_eq!(class(400, "InvalidLaunchTemplateName.AlreadyExistsException", ""), ErrorClass::Conflict);
        assert_eq!(class(400, "ValidationError", "You must use a valid subnet"), ErrorClass::Invalid);
        let text = "You are not authorized to use launch template: nodes";
        assert_eq!(class(400, "ValidationError", text), ErrorClass::Denied);
        assert_eq!(class(503, "EC2ThrottledException", ""), ErrorClass::Throttled);
        assert_eq!(class(429, "Anything", ""), ErrorClass::Throttled);
        assert_eq!(class(503, "Unavailable", ""), ErrorClass::Transient);
        assert_eq!(class(400, "RequestExpired", ""), ErrorClass::Denied);
        assert_eq!(class(400, "AlreadyExists", "AutoScalingGroup by this name exists"), ErrorClass::Conflict);
        assert_eq!(class(400, "ScalingActivityInProgress", ""), ErrorClass::Conflict);
        assert_eq!(class(400, "ResourceInUse", "instances in the group"), ErrorClass::Conflict);
        assert_eq!(class(400, "LimitExceeded", ""), ErrorClass::Quota);
        assert_eq!(class(400, "LaunchTemplateLimitExceeded", ""), ErrorClass::Quota);
        assert_eq!(class(400, "InsufficientInstanceCapacity", ""), ErrorClass::Capacity);
        assert_eq!(class(400, "ParameterNotFound", ""), ErrorClass::NotFound);
        assert_eq!(class(400, "InvalidAMIID.Malformed", ""), ErrorClass::Invalid);
        let text = "Instance Id not found - No managed instance found for instance ID: i-1";
        assert_eq!(class(400, "ValidationError", text), ErrorClass::NotFound);
        let text = "No active Lifecycle Action found with instance ID i-1";
        assert_eq!(class(400, "ValidationError", text), ErrorClass::NotFound);
        let text = "The instance i-1 is not in InService or EnteringStandby or Standby.";
        assert_eq!(class(400, "ValidationError", text), ErrorClass::Conflict);
        assert_eq!(
            class(400, "ValidationError", "AutoScalingGroup name not found - AutoScalingGroup 'a' not found"),
            ErrorClass::NotFound
        );
        assert_eq!(
            class(
                400,
                "ValidationError",
                "The AutoScaling group may not be modified while it is pending delete"
            ),
            ErrorClass::Conflict
        );
    }
}
