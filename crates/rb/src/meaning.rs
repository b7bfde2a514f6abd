//! What meanings are compared by: the embeddings inside the binary, and a second opinion where one is set up.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use rb_engine::analysis::embedding::Embedder;
use rb_server::seconded;

/// Who confirms what the embeddings inside the binary suspect.
#[derive(Debug, Args)]
pub(crate) struct MeaningArgs {
    /// A folder with a sentence transformer that confirms rewordings before they count as a loop. Also
    /// `RB_EMBEDDING_MODEL_DIR`.
    #[arg(long, value_name = "DIR")]
    embedding_model_dir: Option<PathBuf>,
}

impl MeaningArgs {
    /// The packed vectors, confirmed by the transformer if there is one.
    pub(crate) fn embedder(&self) -> anyhow::Result<Arc<dyn Embedder>> {
        let variable = || std::env::var_os("RB_EMBEDDING_MODEL_DIR").filter(|dir| !dir.is_empty());
        let folder = self.embedding_model_dir.clone().or_else(|| variable().map(PathBuf::from));
        match folder {
            Some(folder) => seconded::confirmed_by(&folder).context("`--embedding-model-dir`"),
            None => Ok(seconded::packed()),
        }
    }
}
