//! Requests over plain HTTP on the loopback address, for health and metrics endpoints.

use anyhow::{Context as _, Result};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The body, as text.
    pub body: String,
}

impl Answer {
    /// Whether the status is 200 to 299.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// `GET http://127.0.0.1:<port><path>`. HTTP/1.0, so that the body comes as it is and ends with the connection.
///
/// # Errors
/// When nobody listens there or the answer is not HTTP.
pub async fn get(port: u16, path: &str) -> Result<Answer> {
    exchange(port, &format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n")).await
}

/// `POST http://127.0.0.1:<port><path>` with a JSON document.
///
/// # Errors
/// When nobody listens there or the answer is not HTTP.
pub async fn post(port: u16, path: &str, body: &str) -> Result<Answer> {
    let head = format!("POST {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json");
    exchange(port, &format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())).await
}

async fn exchange(port: u16, request: &str) -> Result<Answer> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    parse(&String::from_utf8_lossy(&answer))
}

fn parse(answer: &str) -> Result<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer has no end of headers")?;
    let status = head.split(' ').nth(1).context("the answer has no status")?;
    Ok(Answer { status: status.parse().context("the status is no number")?, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let answer = parse("HTTP/1.0 503 Service Unavailable\r\nX: y\r\n\r\nnot yet").unwrap();
        assert_eq!(answer, Answer { status: 503, body: "not yet".to_owned() });
        assert!(!answer.is_success());
        assert!(parse("nonsense").is_err());
    }
}
