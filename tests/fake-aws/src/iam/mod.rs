//! Who may call: roles, access keys and the sessions that STS gives, over all accounts.

mod assume;
mod authorize;
mod caller;
mod condition;
mod denial;
mod matching;
mod pod_identity;
mod policy;
#[cfg(test)]
mod policy_tests;
mod principal;
mod registry;
mod requests;
mod role;
mod session;
mod sessions;
mod values;
mod web_identity;

pub(crate) use assume::{Asked, assume_role, bearer, caller_identity, with_web_identity};
pub(crate) use authorize::authorize;
pub use denial::Denial;
pub(crate) use pod_identity::credentials as pod_credentials;
pub use policy::{Decision, Policy, Request};
pub(crate) use principal::Caller;
pub(crate) use registry::Iam;
pub use role::Role;
pub(crate) use role::parts as role_parts;
pub use session::{Credentials, SessionDump};
pub use web_identity::WebIdentity;
