//! The engine inside Python: the compiled part of the package in `python/`, imported there as `reasonblocks._engine`.
//!
//! Thin on purpose. Each file turns Python values into the engine's and back; what is decided is decided in `rb-engine`.
//! The type stubs of the package are written from these signatures by `maturin generate-stubs`, and a test compares them.

/// What a model answered.
mod answer;
/// Names of what the package is built from.
mod catalogue;
/// What one model call left behind.
mod entry;
/// LangChain's messages as steps and answers.
mod langchain;
/// Embeddings, similarity and search.
mod meaning;
/// Stored guidance, from the fields of a server or a file.
mod patterns;
/// Everything a user may set.
mod rules;
/// The walk of one step.
mod run;
/// Long tool output, cut in the middle.
mod saving;
/// What the agent did.
mod step;
/// The heuristic suite over a whole run.
mod suite;
/// Python's texts as UTF-8.
mod text;

use mimalloc::MiMalloc;

/// A step is some hundred small texts; the system's allocator costs a few microseconds more with each. Python keeps its own.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The engine of ReasonBlocks.
#[pyo3::pymodule(name = "_engine")]
mod module {
    /// The version of the engine and of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    /// A score at or above this fires.
    #[pymodule_export]
    const DEFAULT_FIRE_THRESHOLD: f64 = rb_engine::monitors::DEFAULT_FIRE_THRESHOLD;

    #[pymodule_export]
    use crate::answer::Answer;
    #[pymodule_export]
    use crate::catalogue::{monitors, profile_weights};
    #[pymodule_export]
    use crate::entry::StepLogEntry;
    #[pymodule_export]
    use crate::langchain::{Follower, answer_of};
    #[pymodule_export]
    use crate::meaning::{TextIndex, embed, similarity};
    #[pymodule_export]
    use crate::patterns::render_pattern;
    #[pymodule_export]
    use crate::rules::Rules;
    #[pymodule_export]
    use crate::run::{Ask, Plan, Query, Reading, Run};
    #[pymodule_export]
    use crate::saving::compress_tool_output;
    #[pymodule_export]
    use crate::step::Step;
    #[pymodule_export]
    use crate::suite::{heuristic_scores, score_step};
}
