//! HTTP client for outgoing calls: pooled connections, no redirects, no decompression.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

/// Client for `http` and `https`. `B` is the type of request bodies.
pub type HttpClient<B = Full<Bytes>> = Client<HttpsConnector<HttpConnector>, B>;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Builds a client that trusts the root certificates of the operating system.
pub fn new<B>() -> HttpClient<B>
where
    B: hyper::body::Body<Data: Send> + Send,
{
    let tls = match HttpsConnectorBuilder::new()
        .with_provider_and_native_roots(ring::default_provider())
    {
        Ok(tls) => tls,
        Err(error) => {
            tracing::warn!(%error, "no root certificates found; only `http` addresses can be called");
            HttpsConnectorBuilder::new().with_tls_config(no_roots_config())
        }
    };
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true); // avoids the delayed-ACK pause at the end of a request
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp.enforce_http(false);
    // HTTP/1 only: an HTTP/2 client multiplexes over one connection, and providers limit the concurrent streams of a
    // connection to about a hundred, so calls would queue behind each other.
    let connector = tls.https_or_http().enable_http1().wrap_connector(tcp);
    Client::builder(TokioExecutor::new()).build(connector)
}

fn no_roots_config() -> ClientConfig {
    ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}
