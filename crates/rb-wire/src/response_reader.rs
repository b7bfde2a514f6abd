//! Reads a response while its bytes pass to the client.
//!
//! The reader gets a copy of the bytes and keeps at most one event of them; the client gets the original bytes whatever
//! the reader makes of them. The result has a maximum size however long the response is.

use crate::dialects::Dialect;
use crate::json::Value;
use crate::response::{Response, ResponseBuilder};
use crate::sse::{Event, Framer};

/// Maximum length of a response body that is read when it is not streamed, in bytes.
pub const MAX_BODY_BYTES: usize = 32 << 20;

/// Incremental reader of one response.
#[derive(Debug)]
pub struct ResponseReader {
    dialect: &'static dyn Dialect,
    encoding: ResponseEncoding,
    builder: ResponseBuilder,
}

#[derive(Debug)]
enum ResponseEncoding {
    Stream(Framer),
    Body(Vec<u8>),
    /// The body exceeds [`MAX_BODY_BYTES`] and is not read.
    TooLong,
}

impl ResponseReader {
    /// Creates a reader for an event stream.
    pub fn stream(dialect: &'static dyn Dialect) -> Self {
        Self {
            dialect,
            encoding: ResponseEncoding::Stream(Framer::default()),
            builder: ResponseBuilder::default(),
        }
    }

    /// Creates a reader for a response that is one JSON body.
    pub fn body(dialect: &'static dyn Dialect) -> Self {
        Self {
            dialect,
            encoding: ResponseEncoding::Body(Vec::new()),
            builder: ResponseBuilder::default(),
        }
    }

    /// Reads the next bytes, which may end anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        match &mut self.encoding {
            ResponseEncoding::Stream(framer) => {
                let (dialect, builder) = (self.dialect, &mut self.builder);
                framer.feed(bytes, &mut |event| take(dialect, builder, event));
            }
            ResponseEncoding::Body(body) if body.len() + bytes.len() <= MAX_BODY_BYTES => {
                body.extend_from_slice(bytes);
            }
            ResponseEncoding::Body(_) => self.encoding = ResponseEncoding::TooLong,
            ResponseEncoding::TooLong => {}
        }
    }

    /// Returns the part of a streamed response that was read so far.
    pub fn so_far(&self) -> &Response {
        &self.builder.response
    }

    /// Returns the response, complete or cut off.
    pub fn finish(mut self) -> Response {
        let (dialect, builder) = (self.dialect, &mut self.builder);
        match self.encoding {
            ResponseEncoding::Stream(framer) => {
                framer.finish(&mut |event| take(dialect, builder, event));
            }
            ResponseEncoding::Body(body) => {
                if let Some(value) = Value::parse(&body) {
                    dialect.on_body(builder, value);
                }
            }
            ResponseEncoding::TooLong => {}
        }
        self.builder.response
    }
}

/// Reads a response body that is complete.
pub fn read_body(dialect: &'static dyn Dialect, body: &[u8]) -> Response {
    let mut builder = ResponseBuilder::default();
    if let Some(value) = Value::parse(body) {
        dialect.on_body(&mut builder, value);
    }
    builder.response
}

fn take(dialect: &dyn Dialect, builder: &mut ResponseBuilder, event: Event<'_>) {
    // `[DONE]` and other data that is not an object has no content.
    if let Some(value) = Value::parse(event.data).filter(|value| value.is_object()) {
        dialect.on_event(builder, value);
    }
}

#[cfg(test)]
mod tests;
