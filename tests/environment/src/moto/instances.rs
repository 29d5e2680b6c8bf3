//! moto's running machines, as kubelets see them.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use tokio::time::sleep;

use crate::{
    kubelet::{Instance, Instances},
    loopback,
};

/// How often they are read.
const PAUSE: Duration = Duration::from_millis(300);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Seen {
    id: String,
    zone: String,
    instance_type: String,
    image: String,
    version: Option<String>,
    hostname: String,
    address: String,
    user_data: String,
}

#[derive(Default)]
struct Running(Mutex<Vec<Instance>>);

impl Instances for Running {
    fn running(&self) -> Vec<Instance> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Reads them again and again until nobody holds the result.
pub(super) fn watch(port: u16, region: &str) -> Arc<dyn Instances> {
    let running = Arc::new(Running::default());
    let held = Arc::downgrade(&running);
    let path = format!("/_capasg/instances/{region}");
    tokio::spawn(async move {
        while let Some(running) = held.upgrade() {
            // A look that fails leaves what was seen before; the server may be about to end.
            if let Ok(seen) = look(port, &path).await {
                *running.0.lock().unwrap_or_else(PoisonError::into_inner) = seen;
            }
            drop(running);
            sleep(PAUSE).await;
        }
    });
    running
}

async fn look(port: u16, path: &str) -> Result<Vec<Instance>> {
    let answer = loopback::get(port, path).await?;
    let seen: Vec<Seen> = serde_json::from_str(&answer.body).context("instances that cannot be read")?;
    Ok(seen.into_iter().map(Seen::instance).collect())
}

impl Seen {
    fn instance(self) -> Instance {
        Instance {
            id: self.id,
            zone: self.zone,
            instance_type: self.instance_type,
            image: self.image,
            version: self.version,
            hostname: self.hostname,
            address: self.address,
            user_data: STANDARD.decode(self.user_data).unwrap_or_default(),
        }
    }
}
