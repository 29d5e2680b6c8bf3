//! The simulated AWS in this process: its address, its credentials, and its machines as kubelets see them.

use std::{collections::BTreeMap, net::Ipv4Addr, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, anyhow};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use capasg_fake_aws::{DEFAULT_ACCOUNT, InstanceDump, Scope, Settings, Simulator, http::Server};
use capasg_test_objects::{extension_policies, manager_policies};
use chrono::Utc;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::{
    kubelet::{Instance, Instances},
    loopback,
};

/// How often virtual time is brought up to the wall clock while nobody calls.
const TICK: Duration = Duration::from_millis(100);

/// The access key of managers, and that of those of the second management cluster of a test.
const MANAGERS: [&str; 2] = ["simulated", SECOND_MANAGER];
/// The access key of managers in a second management cluster, by which their calls are told apart.
pub const SECOND_MANAGER: &str = "target";
/// The access key of Runtime Extensions.
pub(crate) const EXTENSION: &str = "extension";

/// A simulated AWS behind an HTTP endpoint, in real time. Its account is [`capasg_fake_aws::DEFAULT_ACCOUNT`] for
/// managers started by this library; every region is a world of its own. The policies of the documentation decide what
/// managers and Runtime Extensions may do.
pub struct Cloud {
    simulator: Simulator,
    server: Server,
    ticker: JoinHandle<()>,
}

impl Cloud {
    /// Starts it on a free port of 127.0.0.1, on the calling runtime.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(seed: u64, settings: Settings) -> Result<Self> {
        let simulator = Simulator::with_settings(seed, settings);
        // AWS's clock and ours agree, or it would refuse our signatures.
        simulator.set_time(Utc::now());
        enforce_policies(&simulator)?;
        let server = Server::start(simulator.clone(), (Ipv4Addr::LOCALHOST, 0).into())
            .await
            .context("cannot start the simulated AWS")?;
        let port = server.addr().port();
        // Time passes with each request. Kubelets and tests look at the world in process, so somebody has to ask.
        let ticker = tokio::spawn(async move {
            let mut ticks = tokio::time::interval(TICK);
            loop {
                ticks.tick().await;
                // It only fails while the server is going away.
                let _ = loopback::get(port, "/_sim/time").await;
            }
        });
        Ok(Self { simulator, server, ticker })
    }

    /// Settings for tests: everything that AWS takes its time for happens within a second or two.
    #[must_use]
    pub fn quick() -> Settings {
        Settings {
            scaling_millis: 200,
            launch_millis: 1_000,
            step_millis: 200,
            terminate_millis: 1_000,
            detect_millis: 1_000,
            impaired_millis: 2_000,
            replace_millis: 500,
            delete_millis: 500,
            spot_warning_millis: 10_000,
            retry_millis: 2_000,
            retry_max_millis: 10_000,
            ..Settings::default()
        }
    }

    /// The world, for everything that tests do to it and read of it.
    #[must_use]
    pub fn simulator(&self) -> &Simulator {
        &self.simulator
    }

    /// What `AWS_ENDPOINT_URL` is set to.
    #[must_use]
    pub fn endpoint(&self) -> String {
        self.server.endpoint()
    }

    /// The environment of a program that shall use this AWS, and can reach no other.
    #[must_use]
    pub fn env(&self) -> BTreeMap<String, String> {
        variables(&self.endpoint(), "eu-west-1")
    }

    /// The running machines of a region, for [`crate::Kubelets`].
    #[must_use]
    pub fn instances(&self, region: &str) -> Arc<dyn Instances> {
        Arc::new(Region { simulator: self.simulator.clone(), name: region.to_owned() })
    }
}

/// The holders of the access keys may do what the documentation says that they need, and nothing else.
fn enforce_policies(simulator: &Simulator) -> Result<()> {
    let set = |key: &str, policies: &[Value]| {
        // Not the user of calls without an access key, which are those of the tests.
        let user = format!("arn:aws:iam::{DEFAULT_ACCOUNT}:user/capasg-{key}");
        simulator.put_access_key(key, &user);
        simulator.set_policies(&user, policies).map_err(|error| anyhow!("the policy of {key}: {error}"))
    };
    for key in MANAGERS {
        set(key, &manager_policies()?)?;
    }
    set(EXTENSION, &extension_policies()?)
}

/// The environment of a program whose AWS is at this endpoint.
pub(crate) fn variables(endpoint: &str, region: &str) -> BTreeMap<String, String> {
    [
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_REGION", region),
        ("AWS_ACCESS_KEY_ID", MANAGERS[0]),
        ("AWS_SECRET_ACCESS_KEY", "simulated"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

impl Drop for Cloud {
    fn drop(&mut self) {
        self.ticker.abort();
    }
}

struct Region {
    simulator: Simulator,
    name: String,
}

impl Instances for Region {
    fn running(&self) -> Vec<Instance> {
        let dumps = self.simulator.dump(Some(&self.name));
        let versions = versions(self.simulator.parameters(&Scope::region(&self.name)));
        let all = dumps.into_iter().flat_map(|dump| dump.instances);
        all.filter(|instance| instance.state == "running").map(|dump| instance(dump, &versions)).collect()
    }
}

/// The Kubernetes version that each image holds, as the parameters `/images/node/v1.36.3` tell.
fn versions(parameters: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let versions = parameters.into_iter().filter_map(|(name, image)| {
        let version = name.strip_prefix("/images/node/")?;
        // `v1.36` holds the newest of its patch versions, which has a parameter of its own.
        (version.starts_with('v') && version.split('.').count() == 3).then(|| (image, version.to_owned()))
    });
    versions.collect()
}

fn instance(dump: InstanceDump, versions: &BTreeMap<String, String>) -> Instance {
    let user_data = dump.user_data.and_then(|data| STANDARD.decode(data).ok()).unwrap_or_default();
    Instance {
        id: dump.id,
        zone: dump.zone,
        instance_type: dump.instance_type,
        version: versions.get(&dump.image).cloned(),
        image: dump.image,
        hostname: dump.private_dns_name,
        address: dump.private_ip,
        user_data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::{Look, wait_until};

    #[test]
    fn images_hold_the_version_that_their_parameter_names() {
        let parameters = ["v1.36.3", "v1.36", "arm64/v1.36.3", "v1.37.0"].map(|name| {
            let image = if name == "v1.37.0" { "ami-2" } else { "ami-1" };
            (format!("/images/node/{name}"), image.to_owned())
        });
        let expected = [("ami-1", "v1.36.3"), ("ami-2", "v1.37.0")];
        assert_eq!(versions(parameters.into()), expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    }

    #[tokio::test]
    async fn time_passes_without_calls() {
        let cloud = Cloud::start(1, Cloud::quick()).await.unwrap();
        let before = cloud.simulator().now();
        wait_until(Duration::from_secs(10), "a second of virtual time", || async {
            let passed = cloud.simulator().now() - before;
            Ok(Look::when(passed.num_seconds() >= 1, format!("{passed}")))
        })
        .await
        .unwrap();
    }
}
