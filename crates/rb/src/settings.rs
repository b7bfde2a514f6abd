//! Where the settings of the server come from: a file, the environment, the flags, in this order.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use rb_server::config::RawConfig;
use rb_store::{Backlog, Store};

use crate::cli::DataArgs;

/// Looked for in the data folder when no file is named.
const FILE: &str = "config.toml";

/// The settings before they are checked, and where they live.
pub(crate) struct Settings {
    pub(crate) raw: RawConfig,
    pub(crate) data_dir: PathBuf,
    /// The file that was read, if there was one.
    pub(crate) file: Option<PathBuf>,
}

impl Settings {
    /// Reads the file and the environment, and lays the flags on top.
    pub(crate) fn load(args: &DataArgs) -> Result<Self> {
        let env = |name: &str| std::env::var(name).ok();
        let named = args.config.clone().or_else(|| env("RB_CONFIG").map(PathBuf::from));
        let first_guess = args
            .data_dir
            .clone()
            .or_else(|| env("RB_DATA_DIR").map(PathBuf::from))
            .map_or_else(data_dir_default, Ok)?;
        let file = named.or_else(|| Some(first_guess.join(FILE)).filter(|file| file.is_file()));
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
            if raw.data_dir.as_os_str().is_empty() { first_guess } else { raw.data_dir.clone() };
        Ok(Self { raw, data_dir, file })
    }

    /// The address of the database.
    pub(crate) fn database_url(&self) -> String {
        if self.raw.database_url.is_empty() {
            return format!("sqlite:{}", self.database_file().display());
        }
        self.raw.database_url.clone()
    }

    /// The database in the data folder.
    pub(crate) fn database_file(&self) -> PathBuf {
        self.data_dir.join("reasonblocks.db")
    }

    /// Where the database is, for people. An address is not repeated: it may hold a password.
    pub(crate) fn place(&self) -> String {
        match self.raw.database_url.split_once(':') {
            None => format!("in {}", self.data_dir.display()),
            Some((scheme, _)) => format!("that `database_url` names ({scheme})"),
        }
    }

    /// The file in which this node keeps what it is told while a shared database is away.
    fn backlog_file(&self) -> PathBuf {
        self.data_dir.join("backlog.db")
    }

    /// Opens the database for a server: what is told while a shared one is away waits in the data folder.
    pub(crate) async fn open_to_serve(&self) -> Result<Arc<dyn Store>> {
        let store = self.open().await?;
        if self.raw.database_url.is_empty() || self.raw.database_url.starts_with("sqlite:") {
            return Ok(store);
        }
        make_dir(&self.data_dir)?;
        let file = self.backlog_file();
        let opened = Backlog::wrap(store, &file, self.raw.backlog_bytes_max).await;
        opened.with_context(|| {
            format!("cannot open {}, where steps wait for the database", file.display())
        })
    }

    /// Opens the database; the data folder is made if it is not there.
    pub(crate) async fn open(&self) -> Result<Arc<dyn Store>> {
        if self.raw.database_url.is_empty() {
            make_dir(&self.data_dir)?;
        }
        let opened = rb_store::open(&self.database_url()).await;
        opened.with_context(|| format!("cannot open the database {}", self.place()))
    }
}

fn read(file: &Path) -> Result<RawConfig> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the configuration {}", file.display()))?;
    RawConfig::from_toml(&text).with_context(|| format!("in {}", file.display()))
}

/// Prompts and hashes of keys are kept there, so nobody else may look in.
fn make_dir(dir: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).with_context(|| {
        format!(
            "cannot make the data folder {}; `--data-dir` or `RB_DATA_DIR` names another",
            dir.display()
        )
    })
}

/// The user's data folder.
fn data_dir_default() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .filter(|dir| dir.is_absolute())
        .or_else(|| std::env::home_dir().map(|home| home.join(".local/share")));
    match base {
        Some(base) => Ok(base.join("reasonblocks")),
        None => bail!("there is no home folder; name a data folder with `--data-dir`"),
    }
}
