//! A real Kubernetes API server with its controller manager, on a store that it may share with others.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result};
use kube::Client;

use crate::{
    audit::{self, Audited, Write},
    command::Runner,
    etcd::Etcd,
    kubeconfig::Access,
    pki::{self, Authority},
    ports,
    process::{Process, Program},
    run_folder::RunFolder,
    tools::Tools,
    wait::{Look, wait_until},
};

/// The controllers of a management cluster: what clusterctl and garbage collection need, and no more.
pub const MANAGEMENT_CONTROLLERS: &[&str] = &[
    "namespace-controller",
    "garbage-collector-controller",
    "clusterrole-aggregation-controller",
    "serviceaccount-controller",
];

/// The controllers of a workload cluster: those above, and what makes pods and guards them from eviction.
pub const WORKLOAD_CONTROLLERS: &[&str] = &[
    "namespace-controller",
    "garbage-collector-controller",
    "clusterrole-aggregation-controller",
    "serviceaccount-controller",
    "pod-garbage-collector-controller",
    "disruption-controller",
    "replicaset-controller",
    "deployment-controller",
    "daemonset-controller",
];

/// How long an API server may take to be ready. Seen: 4 s on two idle cores.
const READY: Duration = Duration::from_mins(2);

/// Where an API server listens, and the authority of its certificate and of its clients.
pub(crate) struct Place {
    pub address: SocketAddr,
    pub authority: Authority,
}

/// A running API server and controller manager.
pub struct ApiServer {
    name: String,
    access: Access,
    kubeconfig: PathBuf,
    kubectl: Runner,
    audit_log: PathBuf,
    server: Process,
    controllers: Process,
}

impl ApiServer {
    /// Starts both and waits until the server is ready.
    ///
    /// `name` must be unique in the run: it names files, logs, and the prefix of the keys in etcd.
    ///
    /// # Errors
    /// When a process does not start, or the server is not ready within two minutes.
    pub async fn start(
        tools: &Tools,
        run: &Arc<RunFolder>,
        etcd: &Etcd,
        name: &str,
        controllers: &[&str],
    ) -> Result<Self> {
        Self::start_audited(tools, run, etcd, name, controllers, Audited::default()).await
    }

    /// The same with another audit log.
    ///
    /// # Errors
    /// As [`ApiServer::start`].
    pub async fn start_audited(
        tools: &Tools,
        run: &Arc<RunFolder>,
        etcd: &Etcd,
        name: &str,
        controllers: &[&str],
        audited: Audited,
    ) -> Result<Self> {
        let authority = Authority::new(&format!("{name}-authority"))?;
        let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), ports::free()?);
        Self::start_at(tools, run, etcd, name, controllers, audited, &Place { address, authority }).await
    }

    /// The same at an address and with an authority of the caller's choice, as the control plane of a `Cluster` needs it.
    ///
    /// # Errors
    /// As [`ApiServer::start`].
    pub(crate) async fn start_at(
        tools: &Tools,
        run: &Arc<RunFolder>,
        etcd: &Etcd,
        name: &str,
        controllers: &[&str],
        audited: Audited,
        place: &Place,
    ) -> Result<Self> {
        let Place { address, authority } = place;
        let host = address.ip().to_string();
        let folder = run.path().join("certificates").join(name);
        std::fs::create_dir_all(&folder)?;
        let names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost", &host];
        let (certificate, key) = authority.server(&names.map(String::from))?.write(&folder, "server")?;
        let client_authority = folder.join("authority.crt");
        pki::write_private(&client_authority, authority.certificate())?;
        let (signing, public) = pki::signing_key()?;
        let (signing_key, public_key) = (folder.join("accounts.key"), folder.join("accounts.pub"));
        pki::write_private(&signing_key, &signing)?;
        pki::write_private(&public_key, &public)?;

        let access = Access {
            name: name.to_owned(),
            server: format!("https://{address}"),
            authority: authority.certificate().to_owned(),
            identity: authority.client("admin", "system:masters")?,
            impersonate: None,
        };
        let policy = folder.join("audit-policy.yaml");
        std::fs::write(&policy, audited.policy())?;
        let audit_log = run.log(&format!("{name}-audit"));
        let kubeconfig = access.write(&run.path().join("kubeconfigs").join(format!("{name}.yaml")))?;

        let server = Program::new(format!("{name}-kube-apiserver"), tools.program("kube-apiserver"))
            .flag("--etcd-servers", etcd.url())
            .flag("--etcd-prefix", format!("/{name}"))
            .flag("--bind-address", &host)
            .flag("--advertise-address", &host)
            .flag("--secure-port", address.port().to_string())
            .flag("--tls-cert-file", &certificate)
            .flag("--tls-private-key-file", &key)
            .flag("--client-ca-file", &client_authority)
            .flag("--requestheader-client-ca-file", &client_authority)
            .flag("--requestheader-allowed-names", "front-proxy")
            .flag("--service-account-issuer", "https://kubernetes.default.svc")
            .flag("--service-account-key-file", &public_key)
            .flag("--service-account-signing-key-file", &signing_key)
            .flag("--service-cluster-ip-range", "10.0.0.0/24")
            .flag("--authorization-mode", "RBAC")
            // Pods are objects only, nothing runs in them: they need no token. The other plug-in is what strict
            // clusters switch on, and what makes a forgotten right on `finalizers` show.
            .flag("--disable-admission-plugins", "ServiceAccount")
            .flag("--enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
            .flag("--endpoint-reconciler-type", "none")
            .flag("--allow-privileged", "true")
            .flag("--audit-policy-file", &policy)
            .flag("--audit-log-path", &audit_log)
            // Otherwise a new file begins after 100 MB.
            .flag("--audit-log-maxsize", "10000")
            .start(run)?;

        let controllers =
            Program::new(format!("{name}-controller-manager"), tools.program("kube-controller-manager"))
                .flag("--kubeconfig", &kubeconfig)
                .flag("--authentication-kubeconfig", &kubeconfig)
                .flag("--authorization-kubeconfig", &kubeconfig)
                .flag("--controllers", controllers.join(","))
                .flag("--service-account-private-key-file", &signing_key)
                .flag("--leader-elect", "false")
                .flag("--bind-address", "127.0.0.1")
                .flag("--secure-port", ports::free()?.to_string())
                .flag("--cert-dir", folder.join("controller-manager"));

        let client = access.client().await?;
        wait_until(READY, &format!("the API server {name} ready"), || async {
            server.ensure_running()?;
            let request = http::Request::get("/readyz").body(Vec::new())?;
            let answer = client.request_text(request).await?;
            Ok(Look::when(answer == "ok", answer))
        })
        .await
        .map_err(|error| server.failure(&format!("did not become ready: {error:#}")))?;
        // Only now: before, it would fail to list, and wait longer each time before it tries again.
        let controllers = controllers.start(run)?;

        let kubectl = Runner::new(tools.program("kubectl"))
            .env("KUBECONFIG", &kubeconfig)
            // kubectl keeps what it learns of the server in a folder under HOME: not there, please.
            .env("KUBECACHEDIR", run.path().join("kubectl-cache"))
            // It ends before garbage matters.
            .env("GOGC", "400");
        Ok(Self { name: name.to_owned(), access, kubeconfig, kubectl, audit_log, server, controllers })
    }

    /// The name that it was started with.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How an administrator reaches it.
    #[must_use]
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// The administrator's kubeconfig file.
    #[must_use]
    pub fn kubeconfig(&self) -> &std::path::Path {
        &self.kubeconfig
    }

    /// A new client with an administrator's rights, bound to the runtime that this is called on.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn client(&self) -> Result<Client> {
        self.access.client().await.with_context(|| format!("no client for {}", self.name))
    }

    /// kubectl with an administrator's rights.
    #[must_use]
    pub fn kubectl(&self) -> &Runner {
        &self.kubectl
    }

    /// All writes that the server has answered so far, oldest first; leases and events are left out.
    ///
    /// # Errors
    /// When the audit log cannot be read.
    pub fn writes(&self) -> Result<Vec<Write>> {
        audit::read(&self.audit_log)
    }

    /// The server's process.
    #[must_use]
    pub fn server(&self) -> &Process {
        &self.server
    }

    /// The controller manager's process.
    #[must_use]
    pub fn controllers(&self) -> &Process {
        &self.controllers
    }

    /// Ends both, and waits until the port is free again: a stopped server drains for several seconds.
    ///
    /// # Errors
    /// When an end status cannot be learnt.
    pub async fn stop(&self) -> Result<()> {
        self.controllers.stop(Duration::from_secs(5)).await?;
        self.server.stop(Duration::from_secs(20)).await?;
        Ok(())
    }
}
