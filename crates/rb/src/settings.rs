//! Settings of the server: the configuration file, overridden by the environment, overridden by flags.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use rb_server::config::RawConfig;
use rb_store::{Backlog, Store};

/// Environment variables of the SDKs, also read by commands that use a running server.
pub(crate) const BASE_URL: &str = "REASONBLOCKS_BASE_URL";
pub(crate) const API_KEY: &str = "REASONBLOCKS_API_KEY";

const CONFIG_FILE: &str = "config.toml";
const DATABASE_FILE: &str = "reasonblocks.db";
const BACKLOG_FILE: &str = "backlog.db";

/// Reads an environment variable; an empty one counts as unset.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Location of the server's data and settings.
#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    /// Directory of the database and the configuration; created if missing. Also `RB_DATA_DIR`.
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) data_dir: Option<PathBuf>,

    /// Configuration file (TOML); default: `config.toml` in the data directory. Also `RB_CONFIG`.
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,

    /// Database to use instead of the one in the data directory: `sqlite:PATH` or `postgres://…`. Also `RB_DATABASE_URL`.
    #[arg(long, value_name = "URL", global = true)]
    pub(crate) database_url: Option<String>,
}

/// Unvalidated settings and their origin.
pub(crate) struct Settings {
    pub(crate) raw: RawConfig,
    pub(crate) data_dir: PathBuf,
    /// Configuration file that was read, if any.
    pub(crate) file: Option<PathBuf>,
}

impl Settings {
    /// Reads the configuration file, then applies the environment and the flags.
    pub(crate) fn load(args: &DataArgs) -> Result<Self> {
        let env = |name: &str| std::env::var(name).ok();
        let named = args.config.clone().or_else(|| env("RB_CONFIG").map(PathBuf::from));
        let default_dir = args
            .data_dir
            .clone()
            .or_else(|| env("RB_DATA_DIR").map(PathBuf::from))
            .map_or_else(default_data_dir, Ok)?;
        let file =
            named.or_else(|| Some(default_dir.join(CONFIG_FILE)).filter(|file| file.is_file()));
        let raw = match &file {
            Some(file) => read(file)?,
            None => RawConfig::default(),
        };
        let mut raw = raw.with_env(env)?;
        if let Some(dir) = &args.data_dir {
            raw.data_dir.clone_from(dir);
        }
        if let Some(url) = &args.database_url {
            raw.database_url.clone_from(url);
        }
        let data_dir =
            if raw.data_dir.as_os_str().is_empty() { default_dir } else { raw.data_dir.clone() };
        Ok(Self { raw, data_dir, file })
    }

    pub(crate) fn database_url(&self) -> String {
        if self.raw.database_url.is_empty() {
            return format!("sqlite:{}", self.database_file().display());
        }
        self.raw.database_url.clone()
    }

    /// Database file in the data directory.
    pub(crate) fn database_file(&self) -> PathBuf {
        self.data_dir.join(DATABASE_FILE)
    }

    /// Returns whether the default database exists or another one is configured.
    pub(crate) fn has_database(&self) -> bool {
        !self.raw.database_url.is_empty() || self.database_file().exists()
    }

    /// Describes the database for messages. Omits the URL, which may contain a password.
    pub(crate) fn database_label(&self) -> String {
        match self.raw.database_url.split_once(':') {
            None => format!("in {}", self.data_dir.display()),
            Some((scheme, _)) => format!("of `database_url` ({scheme})"),
        }
    }

    /// Opens the database for `rb serve`, with an on-disk backlog in front of a remote one.
    pub(crate) async fn open_with_backlog(&self) -> Result<Arc<dyn Store>> {
        let store = self.open().await?;
        if self.raw.database_url.is_empty() || self.raw.database_url.starts_with("sqlite:") {
            return Ok(store);
        }
        create_private_dir(&self.data_dir)?;
        let file = self.data_dir.join(BACKLOG_FILE);
        let opened = Backlog::wrap(store, &file, self.raw.backlog_bytes_max).await;
        opened.with_context(|| format!("cannot open the backlog {}", file.display()))
    }

    /// Opens the database; creates the data directory if it is missing.
    pub(crate) async fn open(&self) -> Result<Arc<dyn Store>> {
        if self.raw.database_url.is_empty() {
            create_private_dir(&self.data_dir)?;
        }
        let opened = rb_store::open(&self.database_url()).await;
        opened.with_context(|| format!("cannot open the database {}", self.database_label()))
    }
}

fn read(file: &Path) -> Result<RawConfig> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the configuration {}", file.display()))?;
    RawConfig::from_toml(&text).with_context(|| format!("in {}", file.display()))
}

/// Creates a directory that only this user can read: it will contain prompts and key hashes.
fn create_private_dir(dir: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).with_context(|| {
        format!(
            "cannot create the data directory {}; choose another with `--data-dir` or `RB_DATA_DIR`",
            dir.display()
        )
    })
}

fn default_data_dir() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .filter(|dir| dir.is_absolute())
        .or_else(|| std::env::home_dir().map(|home| home.join(".local/share")));
    match base {
        Some(base) => Ok(base.join("reasonblocks")),
        None => bail!("no home directory found; set a data directory with `--data-dir`"),
    }
}
