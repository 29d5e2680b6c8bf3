//! A plain HTTP/1.1 client and a running front.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context as _, Result};
use capasg_fake_aws::{
    Simulator,
    http::{Pace, Server},
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A front whose time stands still unless told otherwise.
pub struct Front {
    pub simulator: Simulator,
    pub server: Server,
}

/// A reply; `None` where the connection was closed without one.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Reply {
    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.body).with_context(|| self.body.clone())
    }
}

pub async fn exchange(
    addr: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Result<Option<Reply>> {
    let mut stream = TcpStream::connect(addr).await?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: simulator\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let text = String::from_utf8(bytes)?;
    let (head, body) = text.split_once("\r\n\r\n").context("no end of the headers")?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok(Some(Reply { status, head: head.to_owned(), body: body.to_owned() }))
}

impl Front {
    pub async fn start() -> Result<Self> {
        let simulator = Simulator::new(1);
        let addr = (Ipv4Addr::LOCALHOST, 0).into();
        let server = Server::start_paced(simulator.clone(), addr, Pace::Manual).await?;
        Ok(Self { simulator, server })
    }

    /// A signed AWS request with a form body.
    pub async fn aws(&self, service: &str, body: &str) -> Result<Option<Reply>> {
        self.signed("AKIDEXAMPLE", service, "", body).await
    }

    pub async fn signed(&self, key: &str, service: &str, headers: &str, body: &str) -> Result<Option<Reply>> {
        let headers = format!(
            "authorization: AWS4-HMAC-SHA256 Credential={key}/20260101/eu-west-1/{service}/aws4_request, \
             SignedHeaders=host, Signature=00\r\n{headers}"
        );
        exchange(self.server.addr(), "POST", "/", &headers, body).await
    }

    pub async fn control(&self, method: &str, path: &str, body: &Value) -> Result<Reply> {
        let (headers, body) = if body.is_null() {
            ("", String::new())
        } else {
            ("content-type: application/json\r\n", body.to_string())
        };
        let reply = exchange(self.server.addr(), method, &format!("/_sim{path}"), headers, &body).await?;
        reply.context("the connection was closed")
    }

    pub async fn get(&self, path: &str) -> Result<Value> {
        let reply = self.control("GET", path, &Value::Null).await?;
        anyhow::ensure!(reply.status == 200, "{reply:?}");
        reply.json()
    }

    pub async fn post(&self, path: &str, body: Value) -> Result<Value> {
        let reply = self.control("POST", path, &body).await?;
        anyhow::ensure!(reply.status == 200, "{reply:?}");
        reply.json()
    }

    /// Creates a template and a group `pool` of two instances, and lets them reach service.
    pub async fn pool(&self) -> Result<()> {
        let template = "Action=CreateLaunchTemplate&Version=2016-11-15&LaunchTemplateName=nodes\
            &LaunchTemplateData.ImageId=ami-0a1b2c3d&LaunchTemplateData.InstanceType=m7i.large\
            &LaunchTemplateData.UserData=I2Nsb3VkLWNvbmZpZw%3D%3D";
        let group = "Action=CreateAutoScalingGroup&Version=2011-01-01&AutoScalingGroupName=pool&MinSize=0&MaxSize=5\
            &DesiredCapacity=2&LaunchTemplate.LaunchTemplateName=nodes&LaunchTemplate.Version=1\
            &VPCZoneIdentifier=subnet-0a1b2c3d%2C+subnet-0b1c2d3e&Tags.member.1.Key=a&Tags.member.1.Value=b+c";
        for (service, body) in [("ec2", template), ("autoscaling", group)] {
            let reply = self.aws(service, body).await?.context("no reply")?;
            anyhow::ensure!(reply.status == 200, "{reply:?}");
        }
        self.post("/advance", serde_json::json!({"millis": 60_000})).await?;
        Ok(())
    }
}
