//! One connection in: which HTTP it speaks, limits on headers and slow clients, and its end.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::front::Front;

/// A client must have sent its first bytes within this time, and then its headers.
const HEADERS_WITHIN: Duration = Duration::from_secs(15);
/// Headers may be this long in all.
const HEADERS_BYTES_MAX: u16 = u16::MAX;
/// How every connection of HTTP/2 begins, and no request of HTTP/1.
const HTTP2_BEGINS: &[u8] = b"PRI ";
/// Where the first bytes do not come together, the next are looked for after so long, then after twice that, and so on:
/// whoever never sends them must not keep us busy.
const A_MOMENT: Duration = Duration::from_millis(1);

/// How connections are served.
pub(crate) struct Connections {
    front: Front,
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
}

impl Connections {
    pub(crate) fn new(front: Front) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS_WITHIN)
            .max_buf_size(usize::from(HEADERS_BYTES_MAX));
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2.timer(TokioTimer::new()).max_header_list_size(u32::from(HEADERS_BYTES_MAX));
        Self { front, http1, http2 }
    }

    /// Serves a connection until it ends. When the server ends, one that has not said anything yet is dropped, and on the
    /// others the open requests finish.
    ///
    /// The first bytes are looked at and left where they are: with bytes read beforehand, the buffer for requests would
    /// begin at twice its size, and every open connection has one.
    pub(crate) async fn serve(
        self: Arc<Self>,
        stream: TcpStream,
        mut closing: watch::Receiver<()>,
        watcher: Watcher,
    ) {
        let _ = stream.set_nodelay(true); // a matter of speed only
        let begun = tokio::select! {
            begun = tokio::time::timeout(HEADERS_WITHIN, speaks_http2(&stream)) => begun,
            _ = closing.changed() => return,
        };
        let Ok(Ok(is_http2)) = begun else { return };
        let stream = TokioIo::new(stream);
        let service = hyper::service::service_fn({
            let connections = Arc::clone(&self);
            move |request| answer(Arc::clone(&connections), request)
        });
        let served = if is_http2 {
            // Few speak it, and all would have to keep room for it.
            Box::pin(watcher.watch(self.http2.serve_connection(stream, service))).await
        } else {
            watcher.watch(self.http1.serve_connection(stream, service)).await
        };
        if let Err(error) = served {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}

async fn answer(
    connections: Arc<Connections>,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    Ok(connections.front.answer(request).await)
}

async fn speaks_http2(stream: &TcpStream) -> io::Result<bool> {
    let mut begins = [0; HTTP2_BEGINS.len()];
    let mut pause = A_MOMENT;
    loop {
        let count = stream.peek(&mut begins).await?;
        let is_alike = begins[..count] == HTTP2_BEGINS[..count];
        if !is_alike || count == 0 || count == begins.len() {
            return Ok(is_alike && count > 0);
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::http::Version;
    use bytes::Bytes;
    use http_body_util::Empty;
    use hyper_util::client::legacy::Client;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::oneshot;
    use tokio::task::JoinHandle;

    use super::*;
    use crate::trial::Trial;

    /// A server, what ends it, and its end.
    async fn serving() -> (SocketAddr, oneshot::Sender<()>, JoinHandle<io::Result<()>>) {
        let trial = Trial::new().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ended) = oneshot::channel();
        let app = Arc::clone(&trial.app);
        let served = tokio::spawn(async move {
            let _data = trial; // it is deleted with it
            crate::serve(app, listener, async { drop(ended.await) }).await
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
                tokio::time::sleep(3 * A_MOMENT).await;
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
        tokio::time::sleep(3 * A_MOMENT).await;
        end.send(()).unwrap();
        // Requests that are open have much longer than that.
        tokio::time::timeout(Duration::from_secs(10), served).await.unwrap().unwrap().unwrap();
        drop((silent, hesitant));
    }
}
