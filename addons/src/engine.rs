//! One step of a release in its workload cluster: the release is read from the storage of Helm, and a step that
//! [`crate::decide::release`] decided is carried out. What is recorded on the `HelmReleaseProxy` is not written here.

mod cloud_objects;

use std::time::Duration;

use chrono::Utc;
use http_body_util::Limited;
use k8s_openapi::api::core::v1::{PersistentVolume, Secret, Service};
use kube::{
    Api, Client, Config,
    api::{ListParams, PostParams},
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig as KubeKubeconfig, KubeconfigError as KubeKubeconfigError},
};
use serde_json::{Map, Value};
use tower_http::map_response_body::MapResponseBodyLayer;

use crate::{
    decide::release::{Found, Removal, Step},
    helm::{
        ChartSource, Helm, HelmError, Labels, Operation, ReleaseKey, Target,
        storage::{self, StorageError},
    },
    kinds::HelmOptions,
    kubeconfig::Kubeconfig,
};

/// How long the API server of a workload cluster has to respond.
const LIMIT: Duration = Duration::from_secs(15);
/// The most bytes of a response of it: more than the ten revisions of a release that Helm keeps, each of at most 1 MiB.
const LARGEST_RESPONSE: usize = 24 << 20;

/// Why a step failed, or a release could not be read.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The kubeconfig is not usable, for example since a certificate in it is not valid.
    #[error(
        "the kubeconfig is not usable; check the certificates and the address in the Secret <cluster>-kubeconfig"
    )]
    Client,
    /// The Secrets of the release could not be read.
    #[error("cannot read the release: {}", described(.0))]
    Read(#[source] kube::Error),
    /// The objects of the cluster that have resources in the cloud could not be read.
    #[error("cannot list Services and PersistentVolumes: {}", described(.0))]
    Objects(#[source] kube::Error),
    /// The state of an interrupted revision could not be written.
    #[error("cannot set the state of the interrupted revision: {}", described(.0))]
    Write(#[source] kube::Error),
    /// The caller did not determine where the chart is.
    #[error("the source of the chart is not known")]
    NoSource,
    /// A Secret is no release.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A call of Helm failed.
    #[error(transparent)]
    Helm(#[from] HelmError),
}

impl EngineError {
    /// The reason, for events and metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoSource => "SourceNotKnown",
            Self::Client => "KubeconfigNotUsable",
            Self::Read(_) => "ReleaseNotRead",
            Self::Objects(_) => "ObjectsNotRead",
            Self::Write(_) => "ReleaseNotWritten",
            Self::Storage(_) => "ReleaseNotReadable",
            Self::Helm(error) => error.reason(),
        }
    }

    /// Whether the API server of the workload cluster did not respond, so that nothing is known about the release.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Read(error) | Self::Write(error) if !matches!(error, kube::Error::Api(_)))
    }
}

/// The status of a response, without its message: it may contain an object.
pub(crate) fn described(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => {
            format!("the API server responded with {} {}", status.code, status.reason)
        }
        _ => "the API server did not respond".to_owned(),
    }
}

/// A workload cluster.
pub struct Workload {
    kubeconfig: Kubeconfig,
    client: Client,
}

/// What steps require.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// Where the chart is: only installations and upgrades require it.
    pub source: Option<&'a ChartSource>,
    /// The options.
    pub options: &'a HelmOptions,
    /// The values.
    pub values: &'a Map<String, Value>,
    /// The labels of the revision that the step creates.
    pub labels: &'a Labels,
}

impl Workload {
    /// A client for the cluster of a kubeconfig.
    ///
    /// # Errors
    /// If no client can be created from the kubeconfig.
    pub async fn connect(kubeconfig: Kubeconfig) -> Result<Self, EngineError> {
        let client = client(&kubeconfig).await.map_err(|_| EngineError::Client)?;
        Ok(Self { kubeconfig, client })
    }

    /// The current revision of a release, if it exists.
    ///
    /// # Errors
    /// If the API server does not respond, or the Secret of the revision cannot be decoded.
    pub async fn find(&self, key: &ReleaseKey) -> Result<Option<Found>, EngineError> {
        let selected = ListParams::default().labels(&storage::selector(&key.name));
        let secrets = self.secrets(key).list(&selected).await.map_err(EngineError::Read)?;
        let found = storage::newest(&secrets.items)?.map(|stored| Found {
            release: stored.release,
            labels: stored.labels,
            created_at: stored.created_at,
        });
        Ok(found)
    }

    /// The objects of the cluster that have resources in the cloud, by kind and name: Services with load balancers, except
    /// those of `other` releases, and with `volumes`, volumes that are deleted with their claims.
    ///
    /// # Errors
    /// If the API server does not respond, or rejects the request.
    pub async fn with_cloud_resources(
        &self,
        volumes: bool,
        other: &[ReleaseKey],
    ) -> Result<Vec<String>, EngineError> {
        let balanced = ListParams::default().fields("spec.type=LoadBalancer");
        let services: Api<Service> = Api::all(self.client.clone());
        let services = services.list(&balanced).await.map_err(EngineError::Objects)?.items;
        let services = services.iter().filter(|service| !cloud_objects::is_of(service, other));
        let mut found: Vec<String> = services.filter_map(cloud_objects::balanced).collect();
        if volumes {
            let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
            let volumes = volumes.list(&ListParams::default()).await.map_err(EngineError::Objects)?.items;
            found.extend(volumes.iter().filter_map(cloud_objects::deleted_with_claim));
        }
        found.sort();
        Ok(found)
    }

    /// Carries out a step on the release. Steps that change nothing in the workload cluster are a success.
    ///
    /// # Errors
    /// If Helm or the API server fails. The state of the release is read again before the next step.
    pub async fn carry_out(
        &self,
        helm: &Helm,
        key: &ReleaseKey,
        step: &Step,
        request: &Request<'_>,
    ) -> Result<(), EngineError> {
        let target = Target { kubeconfig: &self.kubeconfig, key, options: request.options };
        match step {
            Step::Install { replaces } => {
                let operation = Operation::begin(helm)?;
                operation.fetch(request.source.ok_or(EngineError::NoSource)?).await?;
                operation.install(&target, request.values, request.labels, *replaces).await?;
            }
            Step::Upgrade(_) => {
                let operation = Operation::begin(helm)?;
                operation.fetch(request.source.ok_or(EngineError::NoSource)?).await?;
                operation.upgrade(&target, request.values, request.labels).await?;
            }
            Step::Uninstall(removal) => {
                let operation = Operation::begin(helm)?;
                // Nothing is uninstalled that cannot be installed again.
                if *removal == Removal::OtherChart {
                    operation.fetch(request.source.ok_or(EngineError::NoSource)?).await?;
                }
                operation.uninstall(&target).await?;
            }
            Step::MarkFailed { revision } => self.mark_failed(key, *revision).await?,
            Step::Nothing
            | Step::Wait(_)
            | Step::Record { .. }
            | Step::RecordInstalled
            | Step::Release
            | Step::Reject(_) => {}
        }
        Ok(())
    }

    /// The resources of a revision of the release as YAML.
    ///
    /// # Errors
    /// If the API server does not respond, or the Secret of the revision cannot be decoded.
    pub(crate) async fn manifest(&self, key: &ReleaseKey, revision: i64) -> Result<String, EngineError> {
        let name = storage::secret_name(&key.name, revision);
        let secret = self.secrets(key).get(&name).await.map_err(EngineError::Read)?;
        Ok(storage::manifest(&secret)?)
    }

    /// A client for the workload cluster.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The resources of the release as YAML, and those after an installation or an upgrade. Nothing is changed.
    ///
    /// # Errors
    /// If Helm or the API server fails.
    pub async fn manifests(
        &self,
        helm: &Helm,
        key: &ReleaseKey,
        request: &Request<'_>,
    ) -> Result<(String, String), EngineError> {
        let target = Target { kubeconfig: &self.kubeconfig, key, options: request.options };
        let operation = Operation::begin(helm)?;
        let before = operation.manifest(&target).await?;
        operation.fetch(request.source.ok_or(EngineError::NoSource)?).await?;
        let after = operation.dry_run(&target, request.values, before.is_some()).await?;
        Ok((before.unwrap_or_default(), after))
    }

    /// Sets the state of a pending revision to failed, unless the revision has changed.
    async fn mark_failed(&self, key: &ReleaseKey, revision: i64) -> Result<(), EngineError> {
        let api = self.secrets(key);
        let name = storage::secret_name(&key.name, revision);
        let Some(secret) = api.get_opt(&name).await.map_err(EngineError::Read)? else { return Ok(()) };
        if !storage::is_pending(&secret)? {
            return Ok(());
        }
        let failed = storage::marked_failed(&secret, Utc::now())?;
        api.replace(&name, &PostParams::default(), &failed).await.map_err(EngineError::Write).map(drop)
    }

    fn secrets(&self, key: &ReleaseKey) -> Api<Secret> {
        Api::namespaced(self.client.clone(), key.namespace.as_str())
    }
}

async fn client(kubeconfig: &Kubeconfig) -> Result<Client, Box<dyn std::error::Error + Send + Sync>> {
    let parsed: Result<KubeKubeconfig, KubeKubeconfigError> = KubeKubeconfig::from_yaml(kubeconfig.text());
    let mut config = Config::from_custom_kubeconfig(parsed?, &KubeConfigOptions::default()).await?;
    config.connect_timeout = Some(LIMIT);
    config.read_timeout = Some(LIMIT);
    config.write_timeout = Some(LIMIT);
    // A proxy of the manager's environment is not used for workload clusters.
    config.proxy_url = None;
    // The user of the cluster decides what its API server responds, and its response is read into memory as a whole.
    let bounded = MapResponseBodyLayer::new(|body| Limited::new(body, LARGEST_RESPONSE));
    Ok(ClientBuilder::try_from(config)?.with_layer(&bounded).build())
}
