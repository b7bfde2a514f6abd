//! Response body that forwards bytes unchanged, feeds a copy to the response parser, and sends keep-alive pings while an
//! SSE stream is idle.

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use flate2::write::{GzDecoder, ZlibDecoder};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use rb_wire::response::Response;
use rb_wire::response_reader::ResponseReader;
use tokio::time::{Instant, Sleep};

/// Callback with the parsed response; `true` if the body is complete.
pub(crate) type OnComplete = Box<dyn FnOnce(Response, bool) + Send>;

/// Parser of a response body with its content encoding.
pub(crate) enum Reader {
    Plain(ResponseReader),
    Gzip(Box<GzDecoder<Sink>>),
    Deflate(Box<ZlibDecoder<Sink>>),
    /// Unsupported encoding.
    Undecodable(ResponseReader),
    /// The parser panicked.
    Broken,
    /// Panics on every call.
    #[cfg(test)]
    Panics,
}

/// Adapter from a decoder to the parser.
pub(crate) struct Sink(ResponseReader);

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.feed(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Reader {
    pub(crate) fn new(encoding: Option<&str>, reader: ResponseReader) -> Self {
        match encoding {
            None | Some("" | "identity") => Self::Plain(reader),
            Some("gzip" | "x-gzip") => Self::Gzip(Box::new(GzDecoder::new(Sink(reader)))),
            Some("deflate") => Self::Deflate(Box::new(ZlibDecoder::new(Sink(reader)))),
            Some(_) => Self::Undecodable(reader),
        }
    }

    /// Feeds bytes to the parser. After a panic of the parser, the response passes unparsed.
    fn feed(&mut self, bytes: &[u8]) {
        if catch_unwind(AssertUnwindSafe(|| self.read(bytes))).is_err() {
            *self = Self::Broken;
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        // Bytes that cannot be decoded are forwarded, but not parsed.
        match self {
            Self::Plain(reader) => reader.feed(bytes),
            Self::Gzip(decoder) => drop(decoder.write_all(bytes).and_then(|()| decoder.flush())),
            Self::Deflate(decoder) => drop(decoder.write_all(bytes).and_then(|()| decoder.flush())),
            Self::Undecodable(_) | Self::Broken => {}
            #[cfg(test)]
            Self::Panics => panic!("injected"),
        }
    }

    fn finish(self) -> Response {
        catch_unwind(AssertUnwindSafe(|| self.answer())).unwrap_or_default()
    }

    fn answer(self) -> Response {
        match self {
            Self::Plain(reader) | Self::Undecodable(reader) => reader.finish(),
            Self::Gzip(decoder) => decoder.finish().map(|sink| sink.0.finish()).unwrap_or_default(),
            Self::Deflate(decoder) => {
                decoder.finish().map(|sink| sink.0.finish()).unwrap_or_default()
            }
            Self::Broken => Response::default(),
            #[cfg(test)]
            Self::Panics => panic!("injected"),
        }
    }
}

/// Forwarded response body.
pub(crate) struct TappedBody {
    inner: Incoming,
    reading: Option<(Reader, OnComplete)>,
    ping: Option<Ping>,
}

/// Keep-alive event and the idle time after which it is sent.
pub(crate) type KeepAlive = (&'static [u8], Duration);

/// Keep-alive timer of an event stream.
struct Ping {
    event: &'static [u8],
    interval: Duration,
    timer: Pin<Box<Sleep>>,
    /// Last two bytes: an event ends with an empty line.
    tail: [u8; 2],
}

impl Ping {
    fn new((event, interval): KeepAlive) -> Self {
        let timer = Box::pin(tokio::time::sleep(interval));
        Self { event, interval, timer, tail: *b"\n\n" }
    }

    fn on_bytes(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().rev().take(2).rev() {
            // Ignores the carriage return of a CRLF.
            if *byte != b'\r' {
                self.tail = [self.tail[1], *byte];
            }
        }
        self.reset();
    }

    fn reset(&mut self) {
        self.timer.as_mut().reset(Instant::now() + self.interval);
    }

    fn is_between_events(&self) -> bool {
        self.tail == *b"\n\n"
    }
}

impl TappedBody {
    /// Forwards a body without parsing it.
    pub(crate) fn untapped(inner: Incoming) -> Self {
        Self { inner, reading: None, ping: None }
    }

    /// Forwards a body, parses it on the way, and reports the response. Idle streams get keep-alive events.
    pub(crate) fn tapped(
        inner: Incoming,
        reader: Reader,
        done: OnComplete,
        keep_alive: Option<KeepAlive>,
    ) -> Self {
        Self { inner, reading: Some((reader, done)), ping: keep_alive.map(Ping::new) }
    }

    fn ended(&mut self, whole: bool) {
        if let Some((reader, done)) = self.reading.take() {
            done(reader.finish(), whole);
        }
    }
}

impl Body for TappedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match Pin::new(&mut self.inner).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    if let Some((reader, _)) = &mut self.reading {
                        reader.feed(data);
                    }
                    if let Some(ping) = &mut self.ping {
                        ping.on_bytes(data);
                    }
                }
                if self.inner.is_end_stream() {
                    self.ended(true);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                self.ended(false);
                Poll::Ready(Some(Err(error)))
            }
            Poll::Ready(None) => {
                self.ended(true);
                Poll::Ready(None)
            }
            Poll::Pending => {
                let Some(ping) = &mut self.ping else { return Poll::Pending };
                if ping.timer.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                ping.reset();
                if ping.is_between_events() {
                    return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(ping.event)))));
                }
                // No ping within an event; polling registers the reset timer.
                let _ = ping.timer.as_mut().poll(cx);
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.ping.is_some() { SizeHint::default() } else { self.inner.size_hint() }
    }
}

impl Drop for TappedBody {
    /// Reports a response that the client did not read to its end.
    fn drop(&mut self) {
        self.ended(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_panics_reads_no_more() {
        let mut reader = Reader::Panics;
        reader.feed(b"{}");
        assert!(matches!(reader, Reader::Broken));
        reader.feed(b"{}");
        assert_eq!(reader.finish(), Response::default());
        assert_eq!(Reader::Panics.finish(), Response::default());
    }
}
