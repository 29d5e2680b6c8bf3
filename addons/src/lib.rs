//! The Helm add-on provider: charts on the Clusters that labels select, with the kinds of Cluster API's add-on provider for
//! Helm (X1).
//!
//! * [`kinds`]: `HelmChartProxy` and `HelmReleaseProxy`.
//! * [`caaph`]: whether the other provider of these kinds runs.
//! * [`controller`]: the reconciles of both kinds.
//! * [`decide`]: which `HelmReleaseProxies` a `HelmChartProxy` has, and the next step of each release, as pure functions.
//! * `drift`: resources of releases, compared with those in the workload cluster.
//! * [`engine`]: one step of a release in its workload cluster.
//! * [`helm`]: the calls of Helm.
//! * [`kubeconfig`]: what is accepted of the kubeconfigs of workload clusters.
//! * [`preview`]: what a `HelmChartProxy` would change, without changing it.
//! * [`process`]: child processes that end with the manager.
//! * [`runtime`]: the watches that wake objects, and the queue of both kinds.
//! * [`values`]: values of releases, rendered and read.

pub mod caaph;
pub mod controller;
pub mod crd;
pub mod decide;
mod drift;
pub mod engine;
pub mod helm;
pub mod kinds;
pub mod kubeconfig;
pub mod names;
pub mod preview;
pub mod process;
pub mod runtime;
pub mod values;

pub use kinds::{HelmChartProxy, HelmChartProxySpec, HelmReleaseProxy, HelmReleaseProxySpec};
