//! What blocks a launch: the one table from AWS's messages to what a user has to do. Pure.

use super::state_reason;

/// What blocks a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LaunchBlocker {
    /// AWS has no capacity of that type in that zone.
    Capacity,
    /// The pool's maximum Spot price is below AWS's.
    SpotPrice,
    /// A quota of the account is used up.
    Quota,
    /// The subnet is full.
    Addresses,
    /// The image does not exist, is not shared with the account, or does not fit the type.
    Image,
    /// The instance profile, or AWS's own role, cannot be used.
    Role,
    /// The account has no service-linked role for Spot Instances.
    SpotRole,
    /// The SSH key does not exist.
    Key,
    /// The security group does not exist or belongs to another VPC.
    SecurityGroup,
    /// A volume's encryption key cannot be used: the instance starts and terminates at once.
    Encryption,
    /// The zone does not offer the type.
    TypeInZone,
    /// A lifecycle hook for launches, which is not ours, ended the launch.
    Hook,
    /// The launch template or its version does not exist, or EC2 rejects what it holds.
    Template,
    /// The table does not know the message.
    Unknown,
}

use LaunchBlocker as Is;

/// The codes that the EC2 API reference documents for `StateReason`, but for calls of a user. An instance that shuts itself
/// down, or that EC2 terminates while an image of it is made, is lost to the group all the same.
pub(super) const STATE_REASONS: [(&str, LaunchBlocker); 10] = [
    ("Server.InsufficientInstanceCapacity", Is::Capacity),
    ("Server.InternalError", Is::Unknown),
    ("Server.ScheduledStop", Is::Unknown),
    ("Server.SpotInstanceShutdown", Is::Capacity),
    ("Server.SpotInstanceTermination", Is::Capacity),
    ("Client.InstanceInitiatedShutdown", Is::Unknown),
    ("Client.InstanceTerminated", Is::Unknown),
    // EC2 says no more than this if the key of an encrypted volume cannot be used.
    ("Client.InternalError", Is::Encryption),
    ("Client.InvalidSnapshot.NotFound", Is::Image),
    ("Client.VolumeLimitExceeded", Is::Quota),
];

/// EC2's codes, the part before a dot where there are several of a kind. They win over phrases.
const CODES: [(&str, LaunchBlocker); 25] = [
    ("InsufficientInstanceCapacity", Is::Capacity),
    ("InsufficientHostCapacity", Is::Capacity),
    ("InsufficientCapacity", Is::Capacity),
    ("UnfulfillableCapacity", Is::Capacity),
    ("ReservationCapacityExceeded", Is::Capacity),
    ("SpotMaxPriceTooLow", Is::SpotPrice),
    // Throttling, which is no quota that a user can raise.
    ("RequestLimitExceeded", Is::Unknown),
    ("VcpuLimitExceeded", Is::Quota),
    ("InstanceLimitExceeded", Is::Quota),
    ("MaxSpotInstanceCountExceeded", Is::Quota),
    ("InsufficientFreeAddressesInSubnet", Is::Addresses),
    ("InsufficientCidrBlocks", Is::Addresses),
    ("PrivateIpAddressLimitExceeded", Is::Addresses),
    ("InvalidAMIID", Is::Image),
    ("InvalidAMIId", Is::Image),
    ("InvalidIamInstanceProfile", Is::Role),
    ("UnauthorizedOperation", Is::Role),
    ("InvalidKeyPair", Is::Key),
    ("InvalidGroup", Is::SecurityGroup),
    ("InvalidSecurityGroupID", Is::SecurityGroup),
    ("InvalidKMSKey", Is::Encryption),
    ("InvalidLaunchTemplateId", Is::Template),
    ("InvalidLaunchTemplateName", Is::Template),
    ("InvalidParameterCombination", Is::Template),
    ("InvalidBlockDeviceMapping", Is::Template),
];

/// Phrases in lower case, the more specific first: a message about a rejected template names the image, key or profile.
/// `*` stands for at most one word, such as an instance type.
const PHRASES: [(&str, LaunchBlocker); 36] = [
    ("user's lifecycle action", Is::Hook),
    ("client.internalerror", Is::Encryption),
    // EC2 rejects an image that is not shared, and the missing role for Spot Instances, with codes about authorization.
    ("not authorized for image", Is::Image),
    ("servicelinkedrolecreationnotpermitted", Is::SpotRole),
    ("service-linked role for ec2 spot", Is::SpotRole),
    ("authfailure", Is::Role),
    ("client.invalidkmskey", Is::Encryption),
    ("kms key", Is::Encryption),
    ("not enough free addresses", Is::Addresses),
    ("insufficient free addresses", Is::Addresses),
    ("spot request price", Is::SpotPrice),
    ("max spot instance count exceeded", Is::Quota),
    ("vcpu limit", Is::Quota),
    ("request an adjustment to this limit", Is::Quota),
    ("quota", Is::Quota),
    ("sufficient*capacity", Is::Capacity),
    ("no spot capacity available", Is::Capacity),
    ("not supported in your requested availability zone", Is::TypeInZone),
    ("does not match the architecture", Is::Image),
    ("image id", Is::Image),
    ("ami id", Is::Image),
    ("specified ami", Is::Image),
    ("iaminstanceprofile", Is::Role),
    ("instance profile", Is::Role),
    ("assume role", Is::Role),
    ("not authorized", Is::Role),
    ("key pair", Is::Key),
    ("security group", Is::SecurityGroup),
    ("launch template", Is::Template),
    ("for instancetype", Is::Template),
    ("instance type", Is::Template),
    ("block device", Is::Template),
    ("smaller than snapshot", Is::Template),
    ("snapshot id or volume size must be provided", Is::Template),
    ("being assigned to multiple times", Is::Template),
    ("invalid value", Is::Template),
];

/// How groups with a mixed instances policy introduce the code.
pub(super) const MIXED: [&str; 2] =
    ["Could not launch On-Demand Instances.", "Could not launch Spot Instances."];

/// How Auto Scaling introduces what EC2 says of the launch template of a group.
const VALIDATED: &str = "You must use a valid fully-formed launch template.";

impl LaunchBlocker {
    /// What AWS's message means.
    #[must_use]
    pub fn of(message: &str) -> Self {
        let known = |code: &str| {
            let code = code.strip_prefix("Client.").or_else(|| code.strip_prefix("Server.")).unwrap_or(code);
            let kind = code.split('.').next().unwrap_or(code);
            CODES.iter().find(|(name, _)| *name == kind).map(|(_, blocker)| *blocker)
        };
        if let Some(code) = code(message) {
            if let Some((_, blocker)) = STATE_REASONS.iter().find(|(name, _)| *name == code) {
                return *blocker;
            }
            if let Some(blocker) = known(code) {
                return blocker;
            }
            if code.contains("LimitExceeded") {
                return Self::Quota;
            }
        }
        let lower = message.to_ascii_lowercase();
        PHRASES.iter().find(|(phrase, _)| has(&lower, phrase)).map_or(Self::Unknown, |(_, blocker)| *blocker)
    }

    /// What an answer to a call about the group means that AWS gives in the words of EC2, which validates what the group
    /// launches; none for any other answer.
    #[must_use]
    pub fn of_answer(message: &str) -> Option<Self> {
        message.trim_start().strip_prefix(VALIDATED).map(|rest| Self::of(rest.trim_start()))
    }

    /// What a user can do, one sentence.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            Self::Capacity => "Add an instance type or a subnet, or wait for capacity",
            Self::SpotPrice => {
                "Raise spotMaxPrice or omit it, add an instance type or a subnet, or wait for capacity"
            }
            Self::Quota => "Request a higher quota from AWS, or use fewer or smaller instances",
            Self::Addresses => "Add a subnet, or release IP addresses in the existing subnets",
            Self::Image => {
                "Specify an image that exists, is shared with the account and fits the instance types"
            }
            Self::Role => {
                "Correct the instance profile, or the permissions of AWS's service-linked role for Auto Scaling"
            }
            Self::SpotRole => {
                "Create the service-linked role for Spot Instances once for the account: aws iam \
                 create-service-linked-role --aws-service-name spot.amazonaws.com"
            }
            Self::Key => "Specify an EC2 key pair that exists in the region",
            Self::SecurityGroup => "Specify a security group that exists in the VPC of the subnets",
            Self::Encryption => {
                "Allow AWS's service-linked role for Auto Scaling to use the volumes' encryption key, or specify \
                 another key"
            }
            Self::TypeInZone => {
                "Add an instance type that the Availability Zone offers, or remove the subnet"
            }
            Self::Hook => {
                "See why the lifecycle hook for launches of the group is not completed in time, or with ABANDON, or \
                 delete the hook"
            }
            Self::Template => "Correct the setting in the spec that AWS reports",
            Self::Unknown => "Correct the cause that AWS reports",
        }
    }
}

/// Whether a message has a phrase.
fn has(message: &str, phrase: &str) -> bool {
    let Some((start, end)) = phrase.split_once('*') else { return message.contains(phrase) };
    // What follows begins with the rest of the word, as in `insufficientreservedinstancecapacity`.
    let mut after = message.match_indices(start).filter_map(|(at, found)| message.get(at + found.len()..));
    after.any(|rest| rest.split(' ').take(3).any(|word| word.contains(end)))
}

/// The code that AWS puts before its text: after the introduction of a mixed group, or of the reason of a termination,
/// before ` - ` or a colon.
fn code(message: &str) -> Option<&str> {
    let introduced = || MIXED.iter().find_map(|prefix| message.strip_prefix(prefix));
    let rest = state_reason::quoted(message).or_else(introduced).unwrap_or(message).trim_start();
    let (code, _) = rest.split_once(" - ").or_else(|| rest.split_once(": "))?;
    let is_code = code.chars().all(|c| c.is_ascii_alphanumeric() || c == '.')
        && code.starts_with(|c: char| c.is_ascii_uppercase());
    is_code.then_some(code)
}
