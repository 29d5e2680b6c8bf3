//! With which identity AWS is asked about a pool: as the controller decides for the same pool, by the rules of operators.

use async_trait::async_trait;
use capasg_api::identity::IdentityRequest;
use capasg_cloud::Place;

/// Why nothing may be asked about a pool, in words for users that depend on objects alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotAllowed(pub String);

/// Decides with which identity AWS is asked.
#[async_trait]
pub trait Access: Send + Sync + 'static {
    /// The identity that a pool uses, in its region, if its namespace may use both.
    ///
    /// # Errors
    /// Why no call may be made. No other credentials take the place of an identity.
    async fn place(&self, request: &IdentityRequest, region: &str) -> Result<Place, NotAllowed>;
}
