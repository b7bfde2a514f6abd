//! What a model answered, as far as it matters for the run.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::PyString;
use rb_engine::policy::token_budget::Usage;
use rb_engine::run::record::Reply;

use crate::text::utf8;

/// What a model answered.
#[pyclass(frozen, get_all, eq)]
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The tools it asked for.
    pub(crate) tool_calls: Vec<String>,
    /// Its words, where it asked for none.
    pub(crate) words: Option<String>,
    /// Tokens in all.
    pub(crate) tokens: u64,
    /// Tokens read, where known.
    pub(crate) input_tokens: u64,
    /// Tokens written, where known.
    pub(crate) output_tokens: u64,
    /// Tokens read from the provider's cache, where known.
    pub(crate) cache_read_tokens: u64,
}

#[pymethods]
impl Answer {
    #[new]
    #[pyo3(signature = (tool_calls = vec![], words = None, tokens = 0, input_tokens = 0, output_tokens = 0, cache_read_tokens = 0))]
    fn new(
        tool_calls: Vec<Bound<'_, PyString>>,
        words: Option<&Bound<'_, PyString>>,
        tokens: i64,
        input_tokens: i64,
        output_tokens: i64,
        cache_read_tokens: i64,
    ) -> PyResult<Self> {
        let text = |text: &Bound<'_, PyString>| utf8(text).map(Cow::into_owned);
        // Some hosts say -1 where they do not know.
        let count = |count: i64| u64::try_from(count).unwrap_or(0);
        Ok(Self {
            tool_calls: tool_calls.into_iter().map(|name| text(&name)).collect::<PyResult<_>>()?,
            words: words.map(text).transpose()?,
            tokens: count(tokens),
            input_tokens: count(input_tokens),
            output_tokens: count(output_tokens),
            cache_read_tokens: count(cache_read_tokens),
        })
    }

    fn __repr__(&self) -> String {
        let Self { tool_calls, words, tokens, .. } = self;
        format!("Answer(tool_calls={tool_calls:?}, words={words:?}, tokens={tokens})")
    }
}

impl Answer {
    pub(crate) fn as_engine(&self, latency_ms: f64) -> Reply {
        let usage = Usage {
            cache_read: self.cache_read_tokens,
            ..Usage::new(self.input_tokens, self.output_tokens)
        };
        Reply {
            at_ms: None,
            tool_calls: self.tool_calls.clone(),
            usage: Usage { total: self.tokens.max(usage.total), ..usage },
            latency_ms: Some(latency_ms),
        }
    }
}
