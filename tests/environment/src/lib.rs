//! The real control plane as processes: etcd, kube-apiserver, Cluster API, clusterctl and our manager.

mod api_server;
mod audit;
pub mod cache;
mod cloud;
mod clusterctl;
mod command;
pub mod dump;
mod environment;
mod etcd;
mod kubeconfig;
mod kubelet;
pub mod loopback;
mod management;
mod manager;
mod pki;
mod ports;
mod process;
mod run_folder;
mod scenario;
mod tools;
mod wait;
mod webhooks;
mod workload;

pub use api_server::{ApiServer, MANAGEMENT_CONTROLLERS, WORKLOAD_CONTROLLERS};
pub use audit::Write;
pub use cloud::Cloud;
pub use clusterctl::{Clusterctl, Release};
pub use command::{Output, Runner};
pub use environment::{Environment, Settings};
pub use etcd::Etcd;
pub use kubeconfig::{Access, client_of};
pub use kubelet::{Instance, Instances, Join, KubeletOptions, Kubelets};
pub use management::{Management, ManagementOptions};
pub use manager::{Manager, ManagerOptions, ManagerPlan};
pub use pki::{Authority, Identity};
pub use ports::free as free_port;
pub use process::{Process, Program, tail};
pub use run_folder::RunFolder;
pub use scenario::{PATIENCE, Scenario, scenario};
pub use tools::{Say, Tools};
pub use wait::{Look, wait_for_object, wait_gone, wait_until};
pub use workload::{WorkloadCluster, dynamic};

/// Chooses the cryptography of all TLS connections. rustls panics at the first use if two are compiled in and none
/// was chosen, so every entry point calls this.
pub fn install_crypto_provider() {
    // An error only says that somebody has chosen before.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

/// A line on progress, for people who wait.
pub(crate) fn say(line: &str) {
    eprintln!("environment: {line}");
}
