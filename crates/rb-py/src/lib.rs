//! Python bindings of the engine: the compiled part of the package in `python/`, imported as `reasonblocks._engine`.
//!
//! The bindings only convert values; every decision is made in `rb-engine`. `maturin generate-stubs` writes the type
//! stubs of the package from these signatures, and `cargo xtask test python` compares them with the committed file.

/// Embeddings, similarity and vector search.
mod embedding;
/// Conversion of LangChain messages to steps and responses.
mod langchain;
/// Guidance patterns from the fields of a server reply or a file.
mod patterns;
/// Names of the monitors and weights of the built-in profiles.
mod registry;
/// Token counts and tool calls of a model response.
mod response;
/// Engine configuration from keyword arguments.
mod rules;
/// The stages of one step.
mod run;
/// One step of an agent.
mod step;
/// Step log entry of a completed model call.
mod step_log;
/// The heuristic suite over a whole run.
mod suite;
/// Conversion of Python strings to UTF-8.
mod text;
/// Truncation of long tool output.
mod truncate;
/// One model turn and the steps it results in.
mod turn;

use mimalloc::MiMalloc;

/// A step allocates about a hundred small strings; mimalloc saves a few microseconds per step. Python objects keep
/// Python's own allocator.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The engine of ReasonBlocks.
#[pyo3::pymodule(name = "_engine")]
mod module {
    /// Version of the engine and of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    /// Default score at or above which a monitor fires.
    #[pymodule_export]
    const DEFAULT_FIRE_THRESHOLD: f64 = rb_engine::monitors::DEFAULT_FIRE_THRESHOLD;

    /// Default position of guidance in a middleware.
    #[pymodule_export]
    const DEFAULT_PLACEMENT: &str = Placement::default_of(Integration::Middleware).name();

    use rb_engine::policy::{Integration, Placement};

    #[pymodule_export]
    use crate::embedding::{TextIndex, embed, similarity};
    #[pymodule_export]
    use crate::langchain::{ConversationCursor, parse_response};
    #[pymodule_export]
    use crate::patterns::render_pattern;
    #[pymodule_export]
    use crate::registry::{monitors, profile_weights};
    #[pymodule_export]
    use crate::response::Response;
    #[pymodule_export]
    use crate::rules::Rules;
    #[pymodule_export]
    use crate::run::{Plan, PreCall, Query, Reading, Run};
    #[pymodule_export]
    use crate::step::Step;
    #[pymodule_export]
    use crate::step_log::StepLogEntry;
    #[pymodule_export]
    use crate::suite::{heuristic_scores, score_step};
    #[pymodule_export]
    use crate::truncate::compress_tool_output;
    #[pymodule_export]
    use crate::turn::Turn;
}
