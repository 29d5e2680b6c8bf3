//! What a `HelmChartProxy` would change on which Clusters, as pure functions over the decisions of the controllers: a plan of
//! its objects, a description of each release, and its text.

mod differences;
mod manifests;
mod plan;
mod text;

pub use differences::{Difference, differences};
pub(crate) use manifests::resource_name;
pub use manifests::{ResourceChange, ResourceDifference, documents, resources};
pub use plan::{Plan, Planned, plan};
pub use text::{ClusterPreview, Outcome, Preview, describe};
