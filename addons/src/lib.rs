//! The Helm add-on provider: charts on the Clusters that labels select, with the kinds of Cluster API's add-on provider for
//! Helm (X1).
//!
//! * [`kinds`]: `HelmChartProxy` and `HelmReleaseProxy`.
//! * [`decide`]: which `HelmReleaseProxies` a `HelmChartProxy` has, as a pure function.

pub mod crd;
pub mod decide;
pub mod kinds;
pub mod names;

pub use kinds::{HelmChartProxy, HelmChartProxySpec, HelmReleaseProxy, HelmReleaseProxySpec};
