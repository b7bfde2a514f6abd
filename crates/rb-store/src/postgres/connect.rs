//! Connections: from an address to two pools, one for those who read and one for those who write.

use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use rustls::RootCertStore;
use rustls::crypto::ring;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{Result, StoreError};

/// A connection must stand within this time.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Whoever finds all connections in use waits this long.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Connections that only read.
pub(super) const READERS: usize = 8;

/// What every connection is told first. A commit is on the disk before it is answered; nothing of ours takes long, so
/// what does is stuck; and a node that died in a transaction lets go of its locks.
const SETTINGS: &str = "SET application_name = 'reasonblocks'; SET synchronous_commit = on; \
                        SET statement_timeout = '30s'; SET lock_timeout = '5s'; \
                        SET idle_in_transaction_session_timeout = '15s'; SET client_min_messages = 'warning'";

const DOING: &str = "opening the database";

/// Reads an address of the form `postgres://user:password@host:port/database`. Nothing of it is repeated in errors,
/// since it may hold a password.
pub(super) fn address(url: &str) -> Result<Config> {
    let mut config: Config = url.parse().map_err(|_| StoreError::Failed {
        doing: DOING,
        cause: "the address of the database cannot be read: write \
                `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with special characters as %XX"
            .to_owned(),
    })?;
    config.connect_timeout(CONNECT_WITHIN);
    config.keepalives_idle(Duration::from_secs(30));
    config.tcp_user_timeout(Duration::from_secs(15));
    Ok(config)
}

/// A pool of at most `size` connections, made as they are needed.
pub(super) fn pool(config: &Config, tls: &MakeRustlsConnect, size: usize) -> Result<Pool> {
    // Whether a connection is closed is known without asking; one that is dead in other ways shows itself by time.
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(config.clone(), tls.clone(), recycling);
    let greet = Hook::async_fn(|client: &mut deadpool_postgres::ClientWrapper, _| {
        Box::pin(async move { client.batch_execute(SETTINGS).await.map_err(HookError::Backend) })
    });
    Pool::builder(manager)
        .max_size(size)
        .wait_timeout(Some(WAIT_MAX))
        .create_timeout(Some(CONNECT_WITHIN * 2))
        .runtime(Runtime::Tokio1)
        .post_create(greet)
        .build()
        .map_err(|error| StoreError::Failed { doing: DOING, cause: error.to_string() })
}

/// TLS with the certificates that this machine trusts; `sslmode=disable` in the address does without.
pub(super) fn tls(config: &Config) -> Result<MakeRustlsConnect> {
    let failed = |cause: String| StoreError::Failed { doing: DOING, cause };
    let mut roots = RootCertStore::empty();
    if config.get_ssl_mode() != SslMode::Disable {
        // A machine without certificates, such as a bare container, can still use a socket or a trusted network.
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
    fn an_address_that_cannot_be_read_is_refused_without_repeating_it() {
        for url in
            ["postgres://me:secret@host:notaport/db", "postgres://me:secret@host/db?secret=1"]
        {
            let told = address(url).unwrap_err().to_string();
            assert!(
                told.contains("postgres://USER:PASSWORD") && !told.contains("secret"),
                "{told}"
            );
        }
    }
}
