//! The real control plane as processes: etcd, kube-apiserver, Cluster API, clusterctl and our manager.
//!
//! Nothing of Kubernetes or Cluster API is mocked. The upstream programs are built once from pinned Go modules
//! ([`Tools`]), `clusterctl init` installs the upstream providers and our release, and every manager runs as a process
//! with the arguments of its Deployment and exactly the rights of its service account. Only kubelets ([`Kubelets`]),
//! cert-manager's controller and AWS ([`Cloud`]) are stood in for. Everything is gone when its [`Environment`] is
//! dropped or its process ends, by whatever cause.
//!
//! Tests share one environment per process, which starts in about ten seconds; each has a namespace and a region of
//! its own, and may run a manager that looks at that namespace only:
//!
//! ```no_run
//! use anyhow::Result;
//! use capasg_environment::{Join, Look, ManagerOptions, PATIENCE, dynamic, scenario, wait_for_object};
//!
//! # const POOL: &str = "";
//! #[tokio::test]
//! async fn b6_a_pool_becomes_running() -> Result<()> {
//!     scenario("b6", async |scenario| {
//!         // A real API server as the workload cluster's: it knows evictions. It is ready within seconds, and several
//!         // clusters can share it. `in_memory_cluster` has a kubeadm control plane instead, and takes 40 s.
//!         let api = scenario.environment.workload_api().await?;
//!         let cluster = scenario.stub_cluster("one", &api).await?;
//!         let kubelets = scenario.kubelets(&cluster, Join::Marker("join one".to_owned())).await?;
//!         let manager = scenario.plan_manager(ManagerOptions::default()).await?.start_ready().await?;
//!
//!         scenario.apply(&POOL.replace("REGION", &scenario.region)).await?;
//!         let pools = dynamic(&scenario.client, &scenario.namespace, "cluster.x-k8s.io", "v1beta2", "MachinePool");
//!         wait_for_object(&pools, "workers", PATIENCE, |pool| {
//!             let phase = &pool.data["status"]["phase"];
//!             Look::when(phase == "Running", format!("phase {phase}"))
//!         })
//!         .await?;
//!         assert_eq!(kubelets.nodes().len(), 3);
//!         assert!(scenario.simulator().counts(&capasg_fake_aws::LogFilter::region(&scenario.region)).calls < 10);
//!
//!         manager.kill().await?;
//!         Ok(())
//!     })
//!     .await
//! }
//! ```
//!
//! If such a test fails or panics, all objects, events and logs are written to [`dump::folder`]. A client of
//! [`Scenario`] belongs to the test's own runtime; to get another, ask [`Environment::client`] rather than share one.

mod api_server;
mod audit;
mod balancer;
pub mod cache;
mod charts;
mod children;
mod cloud;
mod clusterctl;
mod command;
pub mod dump;
mod environment;
mod etcd;
mod https;
mod kubeconfig;
mod kubelet;
pub mod loopback;
mod management;
mod manager;
mod moto;
mod pki;
mod ports;
mod process;
pub mod road;
mod run_folder;
mod scenario;
pub mod stand_in;
mod tools;
mod wait;
mod webhooks;
mod workload;

pub use api_server::{ApiServer, MANAGEMENT_CONTROLLERS, WORKLOAD_CONTROLLERS};
pub use audit::{Audited, Write};
pub use balancer::{Answer, Balancer, Verdict};
pub use charts::{
    Chart, ChartRepository, ChartVersion, Login, basic_authorization, package_charts, repository_routes,
};
pub use children::{Child, process_stat};
pub use cloud::{Cloud, SECOND_MANAGER};
pub use clusterctl::{Clusterctl, Release, sibling_release};
pub use command::{Output, Runner};
pub use environment::{Environment, Settings};
pub use etcd::Etcd;
pub use https::{HttpsServer, serve_https};
pub use kubeconfig::{Access, client_of};
pub use kubelet::{Instance, Instances, Join, KubeletOptions, Kubelets};
pub use management::{Management, ManagementOptions};
pub use manager::{Manager, ManagerOptions, ManagerPlan};
pub use moto::{LeftInAws, Moto, MotoCall, MotoSeed, MotoSummary, SeedImage};
pub use pki::{Authority, Identity};
pub use ports::free as free_port;
pub use process::{Process, Program, tail};
pub use run_folder::RunFolder;
pub use scenario::{PATIENCE, Scenario, scenario};
pub use tools::{
    Capa, Say, Tools, add_on_charts, add_on_programs, argocd_health, caaph, capa, capa_definitions, filter,
};
pub use wait::{Look, wait_for_object, wait_gone, wait_until};
pub use workload::{WorkloadCluster, control_plane_secrets, dynamic, report_stub_control_plane};

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
