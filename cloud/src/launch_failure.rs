//! Why launches fail: the one table from AWS's words in scaling activities to what a person has to do about it. Pure.
//!
//! A launch that fails inside AWS shows nowhere but in an activity: `SetDesiredCapacity` itself never fails for it. The
//! texts are those of AWS's troubleshooting guide and of users' reports (aws-facts.md section 12).

use chrono::{DateTime, Utc};

use crate::ScalingActivity;

/// What stands in the way of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LaunchObstacle {
    /// AWS has no such machine to give in that zone.
    Capacity,
    /// The highest price that the pool pays for Spot is below AWS's.
    SpotPrice,
    /// A quota of the account is used up.
    Quota,
    /// The subnet is full.
    Addresses,
    /// The image is gone, not shared with the account, or does not fit the type.
    Image,
    /// The instance profile, or AWS's own role, cannot be used.
    Role,
    /// The SSH key is gone.
    Key,
    /// The security group is gone or belongs to another network.
    SecurityGroup,
    /// A volume's encryption key cannot be used: the machine starts and ends at once.
    Encryption,
    /// The launch template or its version is gone, or EC2 refuses what it holds.
    Template,
    /// AWS says something that the table does not know.
    Unknown,
}

use LaunchObstacle as Is;

/// EC2's codes, the part before a dot where there are several of a kind. They win over words.
const CODES: [(&str, LaunchObstacle); 25] = [
    ("InsufficientInstanceCapacity", Is::Capacity),
    ("InsufficientHostCapacity", Is::Capacity),
    ("InsufficientCapacity", Is::Capacity),
    ("UnfulfillableCapacity", Is::Capacity),
    ("ReservationCapacityExceeded", Is::Capacity),
    ("Unsupported", Is::Capacity),
    ("SpotMaxPriceTooLow", Is::SpotPrice),
    ("VcpuLimitExceeded", Is::Quota),
    ("InstanceLimitExceeded", Is::Quota),
    ("MaxSpotInstanceCountExceeded", Is::Quota),
    ("InsufficientFreeAddressesInSubnet", Is::Addresses),
    ("PrivateIpAddressLimitExceeded", Is::Addresses),
    ("InvalidAMIID", Is::Image),
    ("InvalidAMIId", Is::Image),
    ("InvalidIamInstanceProfile", Is::Role),
    ("UnauthorizedOperation", Is::Role),
    ("AuthFailure", Is::Role),
    ("InvalidKeyPair", Is::Key),
    ("InvalidGroup", Is::SecurityGroup),
    ("InvalidSecurityGroupID", Is::SecurityGroup),
    ("InvalidKMSKey", Is::Encryption),
    ("InvalidLaunchTemplateId", Is::Template),
    ("InvalidLaunchTemplateName", Is::Template),
    ("InvalidParameterCombination", Is::Template),
    ("InvalidBlockDeviceMapping", Is::Template),
];

/// Words in lower case, the more telling first: a refused template names the image, key or profile that it refuses.
const WORDS: [(&str, LaunchObstacle); 28] = [
    ("client.internalerror", Is::Encryption),
    ("client.invalidkmskey", Is::Encryption),
    ("kms key", Is::Encryption),
    ("not enough free addresses", Is::Addresses),
    ("insufficient free addresses", Is::Addresses),
    ("spot request price", Is::SpotPrice),
    ("max spot instance count exceeded", Is::Quota),
    ("vcpu limit", Is::Quota),
    ("request an adjustment to this limit", Is::Quota),
    ("quota", Is::Quota),
    ("sufficient", Is::Capacity),
    ("no spot capacity available", Is::Capacity),
    ("not supported in your requested availability zone", Is::Capacity),
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
    ("invalid value", Is::Template),
];

/// How groups with a mixed instances policy introduce the code.
const MIXED: [&str; 2] = ["Could not launch On-Demand Instances.", "Could not launch Spot Instances."];
/// What ends every message, and says nothing.
const TAIL: &str = "Launching EC2 instance failed.";

impl LaunchObstacle {
    /// What AWS's words mean.
    #[must_use]
    pub fn of(words: &str) -> Self {
        let known = |code: &str| {
            let code = code.strip_prefix("Client.").or_else(|| code.strip_prefix("Server.")).unwrap_or(code);
            let kind = code.split('.').next().unwrap_or(code);
            CODES.iter().find(|(name, _)| *name == kind).map(|(_, obstacle)| *obstacle)
        };
        if let Some(code) = code(words) {
            if let Some(obstacle) = known(code) {
                return obstacle;
            }
            if code.contains("LimitExceeded") {
                return Self::Quota;
            }
        }
        let lower = words.to_ascii_lowercase();
        WORDS.iter().find(|(part, _)| lower.contains(part)).map_or(Self::Unknown, |(_, obstacle)| *obstacle)
    }

    /// What a person can do, one sentence.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            Self::Capacity => "Add a type or subnet, or wait",
            Self::SpotPrice => "Raise spotMaxPrice or leave it out, add a type or subnet, or wait",
            Self::Quota => "Ask AWS for a higher quota, or ask for less",
            Self::Addresses => "Add a subnet, or free addresses in it",
            Self::Image => {
                "Name an image that exists, is shared with the account and fits the instance types"
            }
            Self::Role => {
                "Correct the instance profile, or the rights of AWS's service role for Auto Scaling"
            }
            Self::Key => "Name an SSH key that exists in the region",
            Self::SecurityGroup => "Name a security group that exists in the network of the subnets",
            Self::Encryption => {
                "Let AWS's service role for Auto Scaling use the volumes' encryption key, or name another key"
            }
            Self::Template => "Correct what AWS names in the spec",
            Self::Unknown => "Mend what AWS names",
        }
    }
}

/// The code that AWS put before its words: after the introduction of a mixed group, before ` - ` or a colon.
fn code(words: &str) -> Option<&str> {
    let rest = MIXED.iter().find_map(|prefix| words.strip_prefix(prefix)).unwrap_or(words).trim_start();
    let (code, _) = rest.split_once(" - ").or_else(|| rest.split_once(": "))?;
    let is_code = code.chars().all(|c| c.is_ascii_alphanumeric() || c == '.')
        && code.starts_with(|c: char| c.is_ascii_uppercase());
    is_code.then_some(code)
}

/// A launch that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchFailure {
    /// `ActivityId`.
    pub activity: String,
    /// What stands in the way.
    pub obstacle: LaunchObstacle,
    /// AWS's words, without the end that all have.
    pub words: String,
    /// The type, if AWS names it.
    pub instance_type: Option<String>,
    /// The zone, if AWS names it.
    pub zone: Option<String>,
    /// The subnet, if AWS names it.
    pub subnet: Option<String>,
    /// When the launch was tried.
    pub at: DateTime<Utc>,
}

impl LaunchFailure {
    /// The failure that an activity tells of; `None` if it is none. A launch that was called off is one only if the table
    /// knows its words: we ourselves end instances that still start.
    #[must_use]
    pub fn of(activity: &ScalingActivity) -> Option<Self> {
        if !is_launch(activity) || !matches!(activity.status_code.as_str(), "Failed" | "Cancelled") {
            return None;
        }
        let told = activity.status_message.as_deref().unwrap_or_default().trim();
        let words = told.strip_suffix(TAIL).unwrap_or(told).trim_end().to_owned();
        let obstacle = LaunchObstacle::of(&words);
        if words.is_empty() || (activity.status_code == "Cancelled" && obstacle == LaunchObstacle::Unknown) {
            return None;
        }
        Some(Self {
            activity: activity.id.clone(),
            obstacle,
            instance_type: type_in(&words),
            zone: activity.zone.clone().or_else(|| zone_in(&words)),
            subnet: activity.subnet.clone().or_else(|| word_with(&words, "subnet-")),
            words,
            at: activity.started_at,
        })
    }
}

/// Whether an activity is about a launch.
#[must_use]
pub fn is_launch(activity: &ScalingActivity) -> bool {
    activity.description.as_deref().is_some_and(|what| what.starts_with("Launching"))
}

/// `sufficient <type> capacity`, `requested instance type (<type>)`.
fn type_in(words: &str) -> Option<String> {
    let after = |start: &str| words.split_once(start).map(|(_, rest)| rest);
    let found = after("sufficient ")
        .and_then(|rest| rest.split_once(" capacity"))
        .or_else(|| after("instance type (").and_then(|rest| rest.split_once(')')))
        .map(|(name, _)| name)?;
    found.contains('.').then(|| found.to_owned()).filter(|name| !name.contains(' '))
}

/// `Availability Zone you requested (<zone>)`.
fn zone_in(words: &str) -> Option<String> {
    let (_, rest) = words.split_once("Availability Zone")?;
    let (_, rest) = rest.split_once('(')?;
    let (zone, _) = rest.split_once(')')?;
    (zone.contains('-') && !zone.contains(' ')).then(|| zone.to_owned())
}

fn word_with(words: &str, prefix: &str) -> Option<String> {
    let start = words.find(prefix)?;
    let rest = words.get(start..)?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
    rest.get(..end).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every text of aws-facts.md section 12, and codes as mixed groups introduce them.
    const TEXTS: [(&str, LaunchObstacle, Option<&str>, Option<&str>); 28] = [
        (
            "We currently do not have sufficient m7i.large capacity in the Availability Zone you requested (eu-west-1a). \
             Our system will be working on provisioning additional capacity. You can currently get m7i.large capacity \
             by not specifying an Availability Zone in your request or choosing eu-west-1b.",
            Is::Capacity,
            Some("m7i.large"),
            Some("eu-west-1a"),
        ),
        ("There is no Spot capacity available that matches your request.", Is::Capacity, None, None),
        (
            "Your requested instance type (p5.48xlarge) is not supported in your requested Availability Zone (eu-west-1c).",
            Is::Capacity,
            Some("p5.48xlarge"),
            Some("eu-west-1c"),
        ),
        (
            "You have requested more vCPU capacity than your current vCPU limit of 32 allows for the instance bucket that \
             the specified instance type belongs to. Please visit the limits page to request an adjustment to this limit.",
            Is::Quota,
            None,
            None,
        ),
        ("Max spot instance count exceeded.", Is::Quota, None, None),
        (
            "There are not enough free addresses in subnet 'subnet-0a1b2c3d' to satisfy the requested number of instances.",
            Is::Addresses,
            None,
            None,
        ),
        ("The AMI ID ami-0a1b2c3d does not exist.", Is::Image, None, None),
        ("The image id '[ami-0a1b2c3d]' does not exist", Is::Image, None, None),
        (
            "The architecture 'arm64' of the specified instance type does not match the architecture 'x86_64' of the \
             specified AMI.",
            Is::Image,
            None,
            None,
        ),
        ("The security group sg-0a1b2c3d does not exist.", Is::SecurityGroup, None, None),
        ("The key pair 'ops' does not exist.", Is::Key, None, None),
        (
            "Your Spot request price of 0.01 is lower than the minimum required Spot request fulfillment price of 0.0412.",
            Is::SpotPrice,
            None,
            None,
        ),
        ("Client.InternalError: Client error on launch.", Is::Encryption, None, None),
        (
            "Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: \
             Client.InternalError: Client error on launch",
            Is::Encryption,
            None,
            None,
        ),
        (
            "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state",
            Is::Encryption,
            None,
            None,
        ),
        (
            "Value (nodes) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
            Is::Role,
            None,
            None,
        ),
        ("You are not authorized to perform this operation.", Is::Role, None, None),
        ("Invalid value 'm5.medium' for InstanceType.", Is::Template, None, None),
        (
            "The specified launch template, with template ID lt-0a1b2c3d, does not exist.",
            Is::Template,
            None,
            None,
        ),
        ("Something that nobody has written down yet.", Is::Unknown, None, None),
        (
            "Could not launch On-Demand Instances. VcpuLimitExceeded - You have requested more vCPU capacity than your \
             current vCPU limit of 32 allows.",
            Is::Quota,
            None,
            None,
        ),
        (
            "Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due to your request \
             configuration. Please adjust your request and try again.",
            Is::Capacity,
            None,
            None,
        ),
        (
            "Could not launch On-Demand Instances. InsufficientInstanceCapacity - We currently do not have sufficient \
             m7i.large capacity in the Availability Zone you requested (eu-west-1a).",
            Is::Capacity,
            Some("m7i.large"),
            Some("eu-west-1a"),
        ),
        (
            "Could not launch On-Demand Instances. InsufficientFreeAddressesInSubnet - There are not enough free addresses \
             in subnet 'subnet-0a1b2c3d' to satisfy the requested number of instances.",
            Is::Addresses,
            None,
            None,
        ),
        (
            "Could not launch On-Demand Instances. InvalidAMIID.NotFound - The image id '[ami-0a1b2c3d]' does not exist",
            Is::Image,
            None,
            None,
        ),
        (
            "Could not launch Spot Instances. SpotMaxPriceTooLow - Your Spot request price of 0.01 is lower than the \
             minimum required Spot request fulfillment price of 0.0412.",
            Is::SpotPrice,
            None,
            None,
        ),
        (
            "Could not launch On-Demand Instances. VolumeLimitExceeded - You have exceeded your maximum gp3 storage.",
            Is::Quota,
            None,
            None,
        ),
        (
            "Could not launch On-Demand Instances. CodeOfTomorrow - Something else is wrong.",
            Is::Unknown,
            None,
            None,
        ),
    ];

    fn activity(status: &str, words: &str) -> ScalingActivity {
        ScalingActivity {
            id: "a-1".to_owned(),
            status_code: status.to_owned(),
            status_message: Some(words.to_owned()),
            description: Some("Launching a new EC2 instance.  Status Reason: see below".to_owned()),
            cause: String::new(),
            zone: None,
            subnet: None,
            started_at: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn p46_w23_every_text_of_aws_has_its_reason() {
        for (words, obstacle, kind, zone) in TEXTS {
            let failure = LaunchFailure::of(&activity("Failed", &format!("{words} {TAIL}"))).unwrap();
            assert_eq!(failure.obstacle, obstacle, "{words}");
            assert_eq!((failure.instance_type.as_deref(), failure.zone.as_deref()), (kind, zone), "{words}");
            assert_eq!(failure.words, words, "AWS's words are kept as they are");
        }
    }

    #[test]
    fn a_code_wins_over_the_words_that_follow_it() {
        let words = "Could not launch On-Demand Instances. InvalidKeyPair.NotFound - sufficient quota of security groups";
        assert_eq!(LaunchObstacle::of(words), Is::Key);
        assert_eq!(
            LaunchObstacle::of("We have: a security group"),
            Is::SecurityGroup,
            "no code: it has a blank"
        );
    }

    #[test]
    fn what_is_no_failed_launch_is_none() {
        for status in
            ["Successful", "InProgress", "PreInService", "WaitingForSpotInstanceId", "StatusOfTomorrow"]
        {
            assert_eq!(LaunchFailure::of(&activity(status, TEXTS[0].0)), None, "{status}");
        }
        let mut other = activity("Failed", TEXTS[0].0);
        other.description = Some("Terminating EC2 instance: i-1".to_owned());
        assert_eq!(LaunchFailure::of(&other), None);
        let mut silent = activity("Failed", TAIL);
        assert_eq!(LaunchFailure::of(&silent), None, "nothing is said");
        silent.status_message = None;
        assert_eq!(LaunchFailure::of(&silent), None);
    }

    #[test]
    fn a_launch_that_was_called_off_counts_only_with_known_words() {
        assert_eq!(
            LaunchFailure::of(&activity("Cancelled", "The instance was ended while it was launched.")),
            None
        );
        let kms = LaunchFailure::of(&activity("Cancelled", "Client.InternalError: Client error on launch."))
            .unwrap();
        assert_eq!(kms.obstacle, Is::Encryption);
    }

    #[test]
    fn the_place_comes_from_the_details_or_the_words() {
        let full = "There are not enough free addresses in subnet 'subnet-0a1b2c3d' to satisfy the requested number.";
        assert_eq!(
            LaunchFailure::of(&activity("Failed", full)).unwrap().subnet.as_deref(),
            Some("subnet-0a1b2c3d")
        );
        let mut told = activity("Failed", TEXTS[0].0);
        (told.zone, told.subnet) = (Some("eu-west-1b".to_owned()), Some("subnet-1".to_owned()));
        let failure = LaunchFailure::of(&told).unwrap();
        assert_eq!(
            (failure.zone.as_deref(), failure.subnet.as_deref()),
            (Some("eu-west-1b"), Some("subnet-1"))
        );
    }
}
