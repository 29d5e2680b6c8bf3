//! The adapter that implements the cloud port with the official AWS SDK.
//!
//! [`AwsConnector`] loads credentials and settings once for the process; [`AwsConnector::connect`] gives the
//! [`capasg_cloud::Cloud`] of one region. One method call is one AWS call: nothing here retries, pages or
//! caches, since the gateway above counts and paces every call.
//!
//! # Credentials
//! The SDK's standard chain: environment variables, profile files (`~/.aws`, also with a role to assume), web
//! identity (IAM roles for service accounts), the container endpoint (EKS pod identity) and the instance
//! metadata service. IAM Identity Center (`sso`) and `credential_process` are left out of the build: they serve
//! users at a terminal, need more code and, in the second case, start other programs.
//!
//! Other identities assume a role, or have an access key: [`AwsConnector::with`].
//!
//! # Endpoints
//! `AWS_ENDPOINT_URL` and its per-service forms, `AWS_USE_FIPS_ENDPOINT` and `AWS_USE_DUALSTACK_ENDPOINT` are
//! honoured, and so are `HTTPS_PROXY` and `NO_PROXY`.
//!
//! # Secrets
//! The SDK's trace log can hold the bodies of requests and replies: bootstrap data and tokens among them. It
//! is therefore off while a call runs, whatever the process's log filter says; this crate logs each failed
//! call itself, with AWS's request id, at debug level.

mod assumed;
mod autoscaling;
mod call;
mod causes;
mod cloud;
mod connector;
mod credentials;
mod ec2;
mod identity;
mod message;
mod quotas;
mod sqs;
mod time;

pub use call::CALL_TIMEOUT;
pub use connector::AwsConnector;
pub use ec2::console::ConsoleOutput;
