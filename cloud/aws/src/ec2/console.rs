//! The console output of one instance, and its user data, for a user at a terminal. No port: the manager reads neither.

use aws_sdk_ec2::{Client, types::InstanceAttributeName};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use capasg_cloud::{CloudError, Result};
use chrono::{DateTime, Utc};

use crate::{
    call::{call, unreadable},
    time::instant,
};

/// What an instance wrote to its console.
#[derive(Clone, PartialEq, Eq)]
pub struct ConsoleOutput {
    /// The output, at most 64 KiB; `None` while EC2 has none, which takes some minutes after a launch.
    pub text: Option<String>,
    /// When EC2 read it.
    pub read_at: Option<DateTime<Utc>>,
}

impl std::fmt::Debug for ConsoleOutput {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // It may show bootstrap data.
        out.debug_struct("ConsoleOutput").field("read_at", &self.read_at).finish_non_exhaustive()
    }
}

/// EC2 `GetConsoleOutput`: the latest output, or the last that EC2 kept for instance types that do not support that.
pub(crate) async fn output(client: &Client, instance: &str) -> Result<ConsoleOutput> {
    let api = "GetConsoleOutput";
    let request = || client.get_console_output().instance_id(instance);
    let latest = call(api, request().latest(true).send()).await;
    let reply = match latest {
        // "Latest" is of instances on Nitro (EC2 API reference, GetConsoleOutput).
        Err(CloudError { code, .. }) if code == "UnsupportedOperation" => call(api, request().send()).await?,
        latest => latest?,
    };
    let decode = |output: &str| STANDARD.decode(output).map_err(|_| unreadable(api, "readable Output"));
    let bytes = reply.output().filter(|output| !output.is_empty()).map(decode).transpose()?;
    Ok(ConsoleOutput {
        text: bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        read_at: instant(reply.timestamp()),
    })
}

/// EC2 `DescribeInstanceAttribute`: the user data that an instance was launched with; empty if it has none.
pub(crate) async fn user_data(client: &Client, instance: &str) -> Result<Vec<u8>> {
    let api = "DescribeInstanceAttribute";
    let request =
        client.describe_instance_attribute().instance_id(instance).attribute(InstanceAttributeName::UserData);
    let reply = call(api, request.send()).await?;
    let value = reply.user_data().and_then(|data| data.value()).unwrap_or_default();
    STANDARD.decode(value).map_err(|_| unreadable(api, "readable UserData"))
}
