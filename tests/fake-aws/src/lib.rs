//! A deterministic simulator of the Auto Scaling, EC2, SSM, SQS and Service Quotas APIs for tests and the demo.
//!
//! The core is one function, [`Simulator::call`]: parameters in as a [`Tree`], a reply tree or an [`ApiError`] out.
//! It does no IO, reads no clock and draws no randomness but from its seed: the same seed and the same calls at the
//! same virtual times give the same ids, replies and log. Around it stand an HTTP front ([`http::Server`]) that the
//! unchanged AWS SDK talks to, and a control API (methods of [`Simulator`], and the same as JSON under `/_sim/`).
//!
//! ```
//! use capasg_fake_aws::{ApiError, Scope, Service, Simulator, Tree};
//!
//! let simulator = Simulator::new(1);
//! let scope = Scope::region("eu-west-1");
//! let data = Tree::new().with("ImageId", "ami-0a1b2c3d").with("InstanceType", "m7i.large");
//! let template = Tree::new().with("LaunchTemplateName", "nodes").with("LaunchTemplateData", data);
//! simulator.call(&scope, Service::Ec2, "CreateLaunchTemplate", template)?;
//! let group = Tree::new()
//!     .with("AutoScalingGroupName", "pool")
//!     .with("MinSize", 0)
//!     .with("MaxSize", 5)
//!     .with("DesiredCapacity", 3)
//!     .with("LaunchTemplate", Tree::new().with("LaunchTemplateName", "nodes").with("Version", "1"))
//!     .with("VPCZoneIdentifier", "subnet-0a1b2c3d,subnet-0b1c2d3e");
//! simulator.call(&scope, Service::AutoScaling, "CreateAutoScalingGroup", group)?;
//! simulator.advance(chrono::Duration::seconds(30));
//! let reply = simulator.call(&scope, Service::AutoScaling, "DescribeAutoScalingGroups", Tree::new())?;
//! let group = &reply.items_of("AutoScalingGroups")[0];
//! let states = group.items_of("Instances").iter().filter_map(|one| one.text_of("LifecycleState"));
//! assert_eq!(states.collect::<Vec<_>>(), ["InService"; 3]);
//! # Ok::<(), ApiError>(())
//! ```
//!
//! Accounts and regions are isolated from each other, each made on first use with the same default world (see
//! [`ec2::Network`]). Nothing here was verified against real AWS: behaviours come from the service model, the user
//! guides and error texts that users published; where sources are silent, a [`Settings`] switch says so.

mod autoscaling;
mod bus;
mod call;
mod control;
pub mod ec2;
mod emission;
mod error;
mod events;
pub mod facts;
mod faults;
mod feed;
mod happening;
pub mod http;
mod iam;
mod ids;
mod log;
mod operations;
mod pages;
mod parameters;
pub mod protocol;
mod queue;
mod recording;
mod region;
mod scope;
mod service_quotas;
mod settings;
mod simulator;
mod sqs;
mod ssm;
mod throttle;
mod time;
mod timeline;
mod tree;
mod world;

pub use call::{Answer, Call};
pub use control::{Dump, GroupDump, InstanceDump, RefreshGlance, TemplateDump};
pub use error::{ApiError, CONNECTION_LOST};
pub use faults::{Effect, Fault};
pub use happening::{Change, End, Happening, What};
pub use iam::{Credentials, Role, SessionDump, WebIdentity};
pub use log::{Counts, Filter as LogFilter, LogEntry, Outcome};
pub use operations::{Operation, operations};
pub use recording::{Names, RecordedCall, Recording};
pub use scope::{DEFAULT_ACCOUNT, Scope, Service};
pub use settings::{BatchEnds, Settings, Throttle};
pub use simulator::Simulator;
pub use time::{EPOCH, timestamp};
pub use tree::Tree;
