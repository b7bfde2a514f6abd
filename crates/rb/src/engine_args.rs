//! Arguments that configure the engine: the monitor suite and the embedding model.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use rb_engine::analysis::embedding::Embedder;
use rb_engine::monitors::SuiteChoice;
use rb_engine::policy::Policy;
use rb_runtime::retrieval::embedding;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SuiteArg {
    /// First generation: counts and exact comparisons.
    Heuristic,
    /// Second generation: compares meaning.
    #[default]
    Semantic,
    /// All monitors.
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
    Policy::default().is_quiet(monitor)
}

/// Returns the headlines and the quiet signals of a run as text, from the steps on which each monitor fired and on
/// which it had a high score.
pub(crate) fn headlines_and_signals(
    fired: &BTreeMap<String, u64>,
    high_scores: &BTreeMap<String, u64>,
) -> (Vec<String>, Vec<String>) {
    let text = |(monitor, steps): (&String, &u64)| format!("{monitor} ×{steps}");
    let headlines = fired.iter().filter(|(monitor, _)| !is_quiet_signal(monitor));
    let signals = high_scores.iter().filter(|(monitor, _)| is_quiet_signal(monitor));
    (headlines.map(text).collect(), signals.map(text).collect())
}
