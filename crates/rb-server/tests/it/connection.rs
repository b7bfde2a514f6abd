//! Connections.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Version;
use bytes::Bytes;
use http_body_util::Empty;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::test_server::Trial;

/// Pause between the parts of a request.
const PAUSE: Duration = Duration::from_millis(3);

/// Starts a server; returns its address, the shutdown sender and the server task.
async fn serving() -> (SocketAddr, oneshot::Sender<()>, JoinHandle<io::Result<()>>) {
    let trial = Trial::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (end, ended) = oneshot::channel();
    let app = Arc::clone(&trial.app);
    let served = tokio::spawn(async move {
        let _data = trial; // it is deleted with it
        rb_server::serve(app, listener, async { drop(ended.await) }).await
    });
    (address, end, served)
}

#[tokio::test]
async fn a_request_is_read_however_its_first_bytes_come() {
    let (address, _end, _served) = serving().await;
    let rest = " /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    for (method, expected) in [("GET", "200"), ("PUT", "405"), ("PRIX", "405")] {
        let request = format!("{method}{rest}");
        for first in 0..=5 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            let (first, then) = request.split_at(first);
            stream.write_all(first.as_bytes()).await.unwrap();
            tokio::time::sleep(PAUSE).await;
            stream.write_all(then.as_bytes()).await.unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).await.unwrap();
            let expected = format!("HTTP/1.1 {expected}");
            assert!(reply.starts_with(&expected), "{method}, {first:?} first: {reply}");
        }
    }
}

#[tokio::test]
async fn a_client_may_speak_http2() {
    let (address, _end, _served) = serving().await;
    let client: Client<_, Empty<Bytes>> =
        Client::builder(TokioExecutor::new()).http2_only(true).build_http();
    let reply = client.get(format!("http://{address}/health").parse().unwrap()).await.unwrap();
    assert_eq!((reply.version(), reply.status().as_u16()), (Version::HTTP_2, 200));
}

#[tokio::test]
async fn whoever_says_nothing_does_not_hold_up_the_end() {
    let (address, end, served) = serving().await;
    let silent = TcpStream::connect(address).await.unwrap();
    let mut hesitant = TcpStream::connect(address).await.unwrap();
    hesitant.write_all(b"P").await.unwrap();
    tokio::time::sleep(PAUSE).await;
    end.send(()).unwrap();
    // The shutdown timeout of open requests is much longer.
    tokio::time::timeout(Duration::from_secs(10), served).await.unwrap().unwrap().unwrap();
    drop((silent, hesitant));
}
