//! The kinds in `addons.cluster.x-k8s.io/v1alpha1`: their fields, defaults and statuses are those of Cluster API's add-on
//! provider for Helm (X1). A field that is absent and one with the default value mean the same.

mod chart_proxy;
pub mod conditions;
mod options;
mod release_proxy;
mod shapes;
mod source;
mod strategy;

pub use chart_proxy::{HelmChartProxy, HelmChartProxySpec, HelmChartProxyStatus};
pub use options::{HelmInstallOptions, HelmOptions, HelmUninstallOptions, HelmUpgradeOptions};
pub use release_proxy::{HelmReleaseProxy, HelmReleaseProxySpec, HelmReleaseProxyStatus};
pub use source::{Credentials, ObjectReference, SecretReference, TlsConfig};
pub use strategy::ReconcileStrategy;
