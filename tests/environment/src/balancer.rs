//! What a Service does for the pods behind it: one address, each connection handed to one of the processes that listen.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use anyhow::{Context as _, Result};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use crate::ports;

/// A client sends at least so much for a request of a hook, after the handshake.
const REQUEST: usize = 400;

/// What happens to what an endpoint sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The client receives it.
    Passes,
    /// The client receives it, and it was not the response yet: what comes next is held, too.
    IsNotTheResponse,
    /// The connection ends before the client receives it.
    IsLost,
}

/// What an endpoint sends after a request: its response, or what belongs to the connection. It is held until the verdict;
/// it passes if this is dropped.
pub struct Answer {
    /// The port of the endpoint.
    pub endpoint: u16,
    /// What happens to it.
    pub verdict: oneshot::Sender<Verdict>,
}

type Watcher = Arc<Mutex<Option<mpsc::UnboundedSender<Answer>>>>;

/// A port of 127.0.0.1 in front of others.
pub struct Balancer {
    port: u16,
    watcher: Watcher,
    task: JoinHandle<()>,
}

impl Balancer {
    /// Starts it on the calling runtime. Connections take the endpoints in turn; one where nobody listens is passed over.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start(endpoints: Vec<u16>) -> Result<Self> {
        let port = ports::free()?;
        let listener = TcpListener::bind(("127.0.0.1", port)).await.context("cannot listen")?;
        let watcher = Watcher::default();
        let (observed, turn) = (Arc::clone(&watcher), AtomicUsize::new(0));
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let first = turn.fetch_add(1, Ordering::Relaxed);
                let (endpoints, observed) = (endpoints.clone(), Arc::clone(&observed));
                tokio::spawn(async move {
                    for step in 0..endpoints.len() {
                        let endpoint = endpoints[(first + step) % endpoints.len()];
                        if let Ok(server) = TcpStream::connect(("127.0.0.1", endpoint)).await {
                            join(client, server, endpoint, observed).await;
                            return;
                        }
                    }
                });
            }
        });
        Ok(Self { port, watcher, task })
    }

    /// The port to connect to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Holds every response to requests from now on, until the receiver is dropped.
    #[must_use]
    pub fn watch(&self) -> mpsc::UnboundedReceiver<Answer> {
        let (tell, receive) = mpsc::unbounded_channel();
        *self.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(tell);
        receive
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Copies both ways until one side ends.
async fn join(client: TcpStream, server: TcpStream, endpoint: u16, watcher: Watcher) {
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let is_requested = AtomicBool::new(false);
    tokio::select! {
        () = copy_requests(from_client, to_server, &is_requested) => {}
        () = copy_responses(from_server, to_client, &is_requested, endpoint, &watcher) => {}
    }
}

async fn copy_requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, is_requested: &AtomicBool) {
    let mut buffer = vec![0; 64 * 1024];
    let mut first = true;
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        // The first message of a client opens the session, and may be as long as a request.
        if !first && count >= REQUEST {
            is_requested.store(true, Ordering::SeqCst);
        }
        first = false;
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

async fn copy_responses(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    is_requested: &AtomicBool,
    endpoint: u16,
    watcher: &Watcher,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if is_requested.load(Ordering::SeqCst) {
            match hold(endpoint, watcher).await {
                Verdict::Passes => is_requested.store(false, Ordering::SeqCst),
                Verdict::IsNotTheResponse => {}
                Verdict::IsLost => return,
            }
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

async fn hold(endpoint: u16, watcher: &Watcher) -> Verdict {
    let watcher = watcher.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(watcher) = watcher else { return Verdict::Passes };
    let (verdict, given) = oneshot::channel();
    if watcher.send(Answer { endpoint, verdict }).is_err() {
        return Verdict::Passes;
    }
    given.await.unwrap_or(Verdict::Passes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers every connection with one letter, and then what it receives.
    async fn echo(letter: u8) -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    stream.write_all(&[letter]).await.unwrap();
                    let mut buffer = vec![0; 4096];
                    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                        stream.write_all(&buffer[..count]).await.unwrap();
                    }
                });
            }
        });
        port
    }

    #[tokio::test]
    async fn connections_take_turns_and_pass_over_an_endpoint_that_is_gone() {
        let gone = ports::free().unwrap();
        let balancer = Balancer::start(vec![echo(b'a').await, gone, echo(b'b').await]).await.unwrap();
        let mut letters = Vec::new();
        for _ in 0..6 {
            let mut stream = TcpStream::connect(("127.0.0.1", balancer.port())).await.unwrap();
            letters.push(stream.read_u8().await.unwrap());
        }
        assert_eq!(letters, *b"abbabb");
    }

    #[tokio::test]
    async fn responses_are_held_until_the_verdict() {
        let endpoint = echo(b'a').await;
        let balancer = Balancer::start(vec![endpoint]).await.unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", balancer.port())).await.unwrap();
        let mut buffer = vec![0; REQUEST];
        stream.read_exact(&mut buffer[..1]).await.unwrap();
        let mut watch = balancer.watch();
        stream.write_all(b"hello").await.unwrap();
        stream.read_exact(&mut buffer[..5]).await.unwrap();
        for verdict in [Verdict::IsNotTheResponse, Verdict::Passes] {
            stream.write_all(&[b'x'; REQUEST]).await.unwrap();
            let held = watch.recv().await.unwrap();
            assert_eq!(held.endpoint, endpoint);
            held.verdict.send(verdict).unwrap();
            stream.read_exact(&mut buffer).await.unwrap();
        }
        stream.write_all(b"hello").await.unwrap();
        stream.read_exact(&mut buffer[..5]).await.unwrap();
        stream.write_all(&[b'y'; REQUEST]).await.unwrap();
        watch.recv().await.unwrap().verdict.send(Verdict::IsLost).unwrap();
        assert_eq!(stream.read(&mut buffer).await.unwrap(), 0, "the connection has ended");
    }
}
