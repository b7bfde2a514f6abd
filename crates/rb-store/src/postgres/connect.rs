//! Creates the connection pools for readers and writers.

use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use rustls::RootCertStore;
use rustls::crypto::ring;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{Result, StoreError};

/// Timeout for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for getting a connection from the pool.
const POOL_WAIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of connections for reading.
pub(super) const MAX_READERS: usize = 8;

/// Settings of every connection: a commit is synced before it is acknowledged, statements that take long are
/// cancelled, and the transaction of a dead node releases its locks.
const SETTINGS: &str = "SET application_name = 'reasonblocks'; SET synchronous_commit = on; \
                        SET statement_timeout = '30s'; SET lock_timeout = '5s'; \
                        SET idle_in_transaction_session_timeout = '15s'; SET client_min_messages = 'warning'";

const OPERATION: &str = "opening the database";

/// Parses a URL of the form `postgres://user:password@host:port/database`. Errors do not quote it, since it may
/// contain a password.
pub(super) fn address(url: &str) -> Result<Config> {
    let mut config: Config = url.parse().map_err(|_| StoreError::Failed {
        operation: OPERATION,
        cause: "invalid database URL; write \
                `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with special characters as %XX"
            .to_owned(),
    })?;
    config.connect_timeout(CONNECT_TIMEOUT);
    config.keepalives_idle(Duration::from_secs(30));
    config.tcp_user_timeout(Duration::from_secs(15));
    Ok(config)
}

/// Returns a pool of at most `size` connections, which are established on demand.
pub(super) fn pool(config: &Config, tls: &MakeRustlsConnect, size: usize) -> Result<Pool> {
    // A closed connection is detected without a query, and any other broken one by a timeout.
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(config.clone(), tls.clone(), recycling);
    let configure = Hook::async_fn(|client: &mut deadpool_postgres::ClientWrapper, _| {
        Box::pin(async move { client.batch_execute(SETTINGS).await.map_err(HookError::Backend) })
    });
    Pool::builder(manager)
        .max_size(size)
        .wait_timeout(Some(POOL_WAIT_TIMEOUT))
        .create_timeout(Some(CONNECT_TIMEOUT * 2))
        .runtime(Runtime::Tokio1)
        .post_create(configure)
        .build()
        .map_err(|error| StoreError::Failed { operation: OPERATION, cause: error.to_string() })
}

/// Returns the TLS configuration with the root certificates of this machine. `sslmode=disable` needs none.
pub(super) fn tls(config: &Config) -> Result<MakeRustlsConnect> {
    let failed = |cause: String| StoreError::Failed { operation: OPERATION, cause };
    let mut roots = RootCertStore::empty();
    if config.get_ssl_mode() != SslMode::Disable {
        // Without certificates, as in a minimal container, a socket or an unencrypted connection still works.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let provider = std::sync::Arc::new(ring::default_provider());
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(client))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_url_is_rejected_without_quoting_it() {
        for url in
            ["postgres://me:secret@host:notaport/db", "postgres://me:secret@host/db?secret=1"]
        {
            let error = address(url).unwrap_err().to_string();
            assert!(
                error.contains("postgres://USER:PASSWORD") && !error.contains("secret"),
                "{error}"
            );
        }
    }
}
