//! Calls to other servers: one client with pooled connections, without redirects or decompression.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

/// A client for `http` and `https`; most bodies are read before they are sent.
pub(crate) type Outbound<B = Full<Bytes>> = Client<HttpsConnector<HttpConnector>, B>;

/// A server that does not take a connection within this time is not there.
const CONNECTS_WITHIN: Duration = Duration::from_secs(10);

/// A client that trusts what the machine trusts.
pub(crate) fn client<B>() -> Outbound<B>
where
    B: hyper::body::Body<Data: Send> + Send,
{
    let secured = match HttpsConnectorBuilder::new()
        .with_provider_and_native_roots(ring::default_provider())
    {
        Ok(secured) => secured,
        Err(error) => {
            tracing::warn!(%error, "this machine has no root certificates; only `http` addresses can be called");
            HttpsConnectorBuilder::new().with_tls_config(trusting_nobody())
        }
    };
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true); // the end of a request must not wait for the answer to its beginning
    tcp.set_connect_timeout(Some(CONNECTS_WITHIN));
    tcp.enforce_http(false);
    // Not HTTP/2, though providers have it: the client would keep to one connection, which takes a hundred calls or so at a
    // time, and an agent would wait until another one's answer has ended.
    let connector = secured.https_or_http().enable_http1().wrap_connector(tcp);
    Client::builder(TokioExecutor::new()).build(connector)
}

fn trusting_nobody() -> ClientConfig {
    ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}
