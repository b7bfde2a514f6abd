//! Arguments that configure the engine: the monitor suite and the embedding model.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use rb_engine::analysis::embedding::Embedder;
use rb_engine::monitors::{Suite, SuiteChoice, find};
use rb_runtime::retrieval::embedding;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SuiteArg {
    /// First generation: counts and exact comparisons.
    Heuristic,
    /// Second generation: compares meaning.
    Semantic,
    /// All monitors.
    #[default]
    Both,
}

impl SuiteArg {
    pub(crate) fn choice(self) -> SuiteChoice {
        match self {
            Self::Heuristic => SuiteChoice::Heuristic,
            Self::Semantic => SuiteChoice::Semantic,
            Self::Both => SuiteChoice::Both,
        }
    }
}

/// Selects the model that confirms matches of the built-in embeddings.
#[derive(Debug, Args)]
pub(crate) struct EmbeddingArgs {
    /// Directory of a sentence transformer that confirms paraphrases before they count as a loop. Also
    /// `RB_EMBEDDING_MODEL_DIR`.
    #[arg(long, value_name = "DIR")]
    embedding_model_dir: Option<PathBuf>,
}

impl EmbeddingArgs {
    /// Returns the built-in embedder, backed by the transformer if one is configured.
    pub(crate) fn embedder(&self) -> anyhow::Result<Arc<dyn Embedder>> {
        let variable = || std::env::var_os("RB_EMBEDDING_MODEL_DIR").filter(|dir| !dir.is_empty());
        let dir = self.embedding_model_dir.clone().or_else(|| variable().map(PathBuf::from));
        match dir {
            Some(dir) => embedding::with_transformer(&dir).context("`--embedding-model-dir`"),
            None => Ok(embedding::builtin()),
        }
    }
}

/// Returns whether a monitor is only a quiet signal: recorded, but without headline or exit code.
pub(crate) fn is_quiet_signal(monitor: &str) -> bool {
    find(monitor).is_some_and(|spec| spec.suite == Suite::Heuristic)
}

/// Splits firings by monitor into headlines and quiet signals, as text.
pub(crate) fn split_fired<'a>(
    fired: impl IntoIterator<Item = (&'a String, &'a u64)>,
) -> (Vec<String>, Vec<String>) {
    let (signals, headlines): (Vec<_>, Vec<_>) =
        fired.into_iter().partition(|(monitor, _)| is_quiet_signal(monitor));
    let text = |(monitor, steps): (&String, &u64)| format!("{monitor} ×{steps}");
    (headlines.into_iter().map(text).collect(), signals.into_iter().map(text).collect())
}
