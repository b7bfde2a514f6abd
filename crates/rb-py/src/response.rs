//! Token counts and tool calls of a model response.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::PyString;
use rb_engine::policy::token_budget::Usage;
use rb_engine::run::record::Reply;

use crate::text::utf8;

/// A model response, reduced to the fields that a run records.
#[pyclass(frozen, get_all, eq)]
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Response {
    /// Names of the tools that the model called.
    pub(crate) tool_calls: Vec<String>,
    /// Text of a response without tool calls; `None` if the model called a tool.
    pub(crate) final_text: Option<String>,
    /// Total tokens.
    pub(crate) tokens: u64,
    /// Input tokens; 0 if unknown.
    pub(crate) input_tokens: u64,
    /// Output tokens; 0 if unknown.
    pub(crate) output_tokens: u64,
    /// Input tokens read from the provider's prompt cache; 0 if unknown.
    pub(crate) cache_read_tokens: u64,
}

#[pymethods]
impl Response {
    #[new]
    #[pyo3(signature = (tool_calls = vec![], final_text = None, tokens = 0, input_tokens = 0, output_tokens = 0, cache_read_tokens = 0))]
    fn new(
        tool_calls: Vec<Bound<'_, PyString>>,
        final_text: Option<&Bound<'_, PyString>>,
        tokens: i64,
        input_tokens: i64,
        output_tokens: i64,
        cache_read_tokens: i64,
    ) -> PyResult<Self> {
        let text = |text: &Bound<'_, PyString>| utf8(text).map(Cow::into_owned);
        // Some frameworks report unknown counts as -1.
        let count = |count: i64| u64::try_from(count).unwrap_or(0);
        Ok(Self {
            tool_calls: tool_calls.into_iter().map(|name| text(&name)).collect::<PyResult<_>>()?,
            final_text: final_text.map(text).transpose()?,
            tokens: count(tokens),
            input_tokens: count(input_tokens),
            output_tokens: count(output_tokens),
            cache_read_tokens: count(cache_read_tokens),
        })
    }

    fn __repr__(&self) -> String {
        let Self { tool_calls, final_text, tokens, .. } = self;
        format!("Response(tool_calls={tool_calls:?}, final_text={final_text:?}, tokens={tokens})")
    }
}

impl Response {
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
