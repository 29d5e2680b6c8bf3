//! Every message that AWS is known to write, and what it means.

use std::collections::BTreeSet;

use LaunchBlocker as Is;

use super::*;

/// Texts of "Troubleshoot Amazon EC2 Auto Scaling" and of users' reports, and codes as mixed groups introduce them.
const TEXTS: [(&str, LaunchBlocker, Option<&str>, Option<&str>); 33] = [
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
        Is::TypeInZone,
        Some("p5.48xlarge"),
        Some("eu-west-1c"),
    ),
    (
        "Could not launch On-Demand Instances. Unsupported - Your requested instance type (p5.48xlarge) is not \
         supported in your requested Availability Zone (eu-west-1c).",
        Is::TypeInZone,
        Some("p5.48xlarge"),
        Some("eu-west-1c"),
    ),
    (
        "Could not launch On-Demand Instances. Unsupported - The requested configuration is currently not \
         supported. Please check the documentation for supported configurations.",
        Is::Unknown,
        None,
        None,
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
    (
        "Volume of size 10GB is smaller than snapshot 'snap-0a1b2c3d', expect size >= 20GB. Launching EC2 instance failed.",
        Is::Template,
        None,
        None,
    ),
    ("Either snapshot ID or volume size must be provided for: /dev/sdf", Is::Template, None, None),
    ("/dev/xvda is being assigned to multiple times.", Is::Template, None, None),
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

fn activity(status: &str, message: &str) -> ScalingActivity {
    ScalingActivity {
        id: "a-1".to_owned(),
        status: ActivityStatus::parse(status),
        status_message: Some(message.to_owned()),
        description: Some("Launching a new EC2 instance.  Status Reason: see below".to_owned()),
        cause: String::new(),
        zone: None,
        subnet: None,
        started_at: DateTime::UNIX_EPOCH,
        ended_at: None,
    }
}

// Pains: P46, W23
#[test]
fn every_text_of_aws_has_its_reason() {
    for (message, blocker, kind, zone) in TEXTS {
        let failure = LaunchFailure::of(&activity("Failed", &format!("{message} {TAIL}"))).unwrap();
        assert_eq!(failure.blocker, blocker, "{message}");
        assert_eq!((failure.instance_type.as_deref(), failure.zone.as_deref()), (kind, zone), "{message}");
        assert_eq!(failure.message, message, "AWS's message is kept as it is");
    }
}

#[test]
fn a_code_wins_over_the_words_that_follow_it() {
    let message =
        "Could not launch On-Demand Instances. InvalidKeyPair.NotFound - sufficient quota of security groups";
    assert_eq!(LaunchBlocker::of(message), Is::Key);
    assert_eq!(LaunchBlocker::of("We have: a security group"), Is::SecurityGroup, "no code: it has a blank");
}

#[test]
fn what_is_no_failed_launch_is_none() {
    for status in ["Successful", "InProgress", "PreInService", "WaitingForSpotInstanceId", "StatusOfTomorrow"]
    {
        assert_eq!(LaunchFailure::of(&activity(status, TEXTS[0].0)), None, "{status}");
    }
    let mut other = activity("Failed", TEXTS[0].0);
    other.description = Some("Terminating EC2 instance: i-1".to_owned());
    assert_eq!(LaunchFailure::of(&other), None);
    let mut silent = activity("Failed", TAIL);
    for _ in 0..2 {
        let failure = LaunchFailure::of(&silent).unwrap();
        assert_eq!((failure.blocker, failure.message.as_str()), (Is::Unknown, SILENT), "nothing is said");
        silent.status_message = None;
    }
}

/// What Auto Scaling writes when an instance dies before it is in service.
fn death(reason: &str) -> String {
    format!(
        "Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: {reason}"
    )
}

/// `StateReason` in the EC2 API reference.
const DOCUMENTED: [&str; 12] = [
    "Server.InsufficientInstanceCapacity",
    "Server.InternalError",
    "Server.ScheduledStop",
    "Server.SpotInstanceShutdown",
    "Server.SpotInstanceTermination",
    "Client.InstanceInitiatedShutdown",
    "Client.InstanceTerminated",
    "Client.InternalError",
    "Client.InvalidSnapshot.NotFound",
    "Client.UserInitiatedHibernate",
    "Client.UserInitiatedShutdown",
    "Client.VolumeLimitExceeded",
];

// Pains: P46
#[test]
fn every_death_at_launch_is_a_failure_unless_a_user_caused_it() {
    let deaths = blocker::STATE_REASONS.map(|(code, blocker)| (code, Some(blocker)));
    let all: Vec<_> = deaths.into_iter().chain(state_reason::BY_USER.map(|code| (code, None))).collect();
    let known: BTreeSet<_> = all.iter().map(|(code, _)| *code).collect();
    assert_eq!(known, BTreeSet::from(DOCUMENTED));
    for (code, blocker) in all {
        let message = death(&format!("{code}: the text of AWS"));
        let found = LaunchFailure::of(&activity("Cancelled", &message));
        assert_eq!(found.as_ref().map(|failure| failure.blocker), blocker, "{code}");
        assert!(found.is_none_or(|failure| failure.message == message), "AWS's words are kept: {code}");
    }
    for (reason, blocker) in [
        ("Client.VolumeLimitExceeded: Volume limit exceeded", Is::Quota),
        ("Client.SnapshotLimitExceeded: too many", Is::Quota),
        ("Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state", Is::Encryption),
        ("Server.CodeOfTomorrow: something else", Is::Unknown),
        ("Client.UserInitiatedShutdownOfTomorrow: something else", Is::Unknown),
        ("words without a code", Is::Unknown),
        ("", Is::Unknown),
    ] {
        let found = LaunchFailure::of(&activity("Cancelled", &death(reason)));
        assert_eq!(found.map(|failure| failure.blocker), Some(blocker), "{reason}");
    }
    let unexplained = "Instance became unhealthy while waiting for instance to be in InService state.";
    assert!(LaunchFailure::of(&activity("Cancelled", unexplained)).is_some());
}

#[test]
fn a_launch_that_a_hook_ends_is_a_failure() {
    for end in ["Heartbeat Timeout", "Completed with ABANDON Result", "a reason of tomorrow"] {
        let message = format!(
            "Instance failed to complete user's Lifecycle Action: Lifecycle Action with token \
             0a1b2c3d-0000-4000-8000-0123456789ab was abandoned: {end}"
        );
        let found = LaunchFailure::of(&activity("Cancelled", &message));
        assert_eq!(found.map(|failure| failure.blocker), Some(Is::Hook), "{end}");
    }
}

#[test]
fn codes_about_authorization_are_not_always_about_the_role() {
    for (message, blocker) in [
        ("AuthFailure - Not authorized for images: [ami-0a1b2c3d]", Is::Image),
        ("Not authorized for images: [ami-0a1b2c3d]", Is::Image),
        (
            "AuthFailure.ServiceLinkedRoleCreationNotPermitted - The provided credentials do not have permission to \
             create the service-linked role for EC2 Spot Instances.",
            Is::SpotRole,
        ),
        (
            "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances.",
            Is::SpotRole,
        ),
        ("AuthFailure - The caller may not use this.", Is::Role),
        ("UnauthorizedOperation - You are not authorized to perform this operation.", Is::Role),
    ] {
        let mixed = format!("Could not launch Spot Instances. {message}");
        assert_eq!((LaunchBlocker::of(message), LaunchBlocker::of(&mixed)), (blocker, blocker), "{message}");
    }
}

#[test]
fn a_launch_that_was_called_off_counts_only_with_known_words() {
    assert_eq!(
        LaunchFailure::of(&activity("Cancelled", "The instance was ended while it was launched.")),
        None
    );
    let kms =
        LaunchFailure::of(&activity("Cancelled", "Client.InternalError: Client error on launch.")).unwrap();
    assert_eq!(kms.blocker, Is::Encryption);
    for (message, reported) in [
        (
            "Your account is currently blocked. Launching EC2 instance failed.",
            "Your account is currently blocked.",
        ),
        (
            "Could not launch On-Demand Instances. PendingVerification - Your request is being validated.",
            "Could not launch On-Demand Instances. PendingVerification - Your request is being validated.",
        ),
    ] {
        let failure = LaunchFailure::of(&activity("Cancelled", message)).unwrap();
        assert_eq!((failure.blocker, failure.message.as_str()), (Is::Unknown, reported));
    }
}

#[test]
fn what_ec2_says_of_a_launch_template_is_classified_without_its_introduction() {
    let of = |rest: &str| {
        LaunchBlocker::of_answer(&format!("You must use a valid fully-formed launch template. {rest}"))
    };
    let limit = "You have requested more instances (6) than your current instance limit of 4 allows. Visit \
                 http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.";
    assert_eq!(of(limit), Some(Is::Quota));
    assert_eq!(of("The image id '[ami-0a1b2c3d]' does not exist"), Some(Is::Image));
    assert_eq!(of("Invalid IAM Instance Profile name"), Some(Is::Role));
    assert_eq!(
        of("In order to use this AWS Marketplace product you need to accept terms"),
        Some(Is::Unknown)
    );
    assert_eq!(LaunchBlocker::of_answer("The image id '[ami-0a1b2c3d]' does not exist"), None);
}

#[test]
fn only_what_aws_says_of_capacity_is_a_lack_of_it() {
    for (message, blocker) in [
        (
            "We currently do not have sufficient capacity in the Availability Zone you requested.",
            Is::Capacity,
        ),
        ("There was insufficient instance capacity.", Is::Capacity),
        ("InsufficientReservedInstanceCapacity - None is left.", Is::Capacity),
        ("InsufficientCidrBlocks - There are not enough free CIDR blocks in the subnet.", Is::Addresses),
        ("Insufficient permissions to assume role nodes.", Is::Role),
        ("Insufficient permissions: you are not authorized to perform this operation.", Is::Role),
        ("Insufficient permissions for Capacity Reservations.", Is::Unknown),
        ("The size of the volume is not sufficient.", Is::Unknown),
    ] {
        assert_eq!(LaunchBlocker::of(message), blocker, "{message}");
    }
}

#[test]
fn a_launch_fails_when_it_ends() {
    let mut told = activity("Failed", TEXTS[0].0);
    let failure = LaunchFailure::of(&told).unwrap();
    assert_eq!((failure.started_at, failure.at), (told.started_at, told.started_at));
    let end = told.started_at + chrono::TimeDelta::hours(1);
    told.ended_at = Some(end);
    let failure = LaunchFailure::of(&told).unwrap();
    assert_eq!((failure.started_at, failure.at), (told.started_at, end));
}

#[test]
fn throttling_is_no_quota() {
    let message = "Could not launch On-Demand Instances. RequestLimitExceeded - Request limit exceeded.";
    assert_eq!(LaunchBlocker::of(message), Is::Unknown);
}

#[test]
fn the_place_comes_from_the_details_or_the_words() {
    let full =
        "There are not enough free addresses in subnet 'subnet-0a1b2c3d' to satisfy the requested number.";
    assert_eq!(
        LaunchFailure::of(&activity("Failed", full)).unwrap().subnet.as_deref(),
        Some("subnet-0a1b2c3d")
    );
    let mut told = activity("Failed", TEXTS[0].0);
    (told.zone, told.subnet) = (Some("eu-west-1b".to_owned()), Some("subnet-1".to_owned()));
    let failure = LaunchFailure::of(&told).unwrap();
    assert_eq!((failure.zone.as_deref(), failure.subnet.as_deref()), (Some("eu-west-1b"), Some("subnet-1")));
}
