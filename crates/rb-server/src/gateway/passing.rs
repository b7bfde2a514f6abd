//! An answer on its way to the client: the bytes as they come, a reader beside them, and a sign of life in silence.

use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use flate2::write::{GzDecoder, ZlibDecoder};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use rb_wire::answer::{Answer, AnswerReader};
use rb_wire::dialects::anthropic::PING;
use tokio::time::{Instant, Sleep};

/// Clients show a warning after about twenty seconds of silence.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// Takes what the answer told, and whether it came to its end here.
pub(super) type WhenDone = Box<dyn FnOnce(Answer, bool) + Send>;

/// Reads an answer in the encoding it comes in.
pub(super) enum Reader {
    Plain(AnswerReader),
    Gzip(Box<GzDecoder<Sink>>),
    Deflate(Box<ZlibDecoder<Sink>>),
    /// In an encoding nobody here can read.
    Blind(AnswerReader),
}

/// Where decoded bytes go.
pub(super) struct Sink(AnswerReader);

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
    pub(super) fn new(encoding: Option<&str>, reader: AnswerReader) -> Self {
        match encoding {
            None | Some("" | "identity") => Self::Plain(reader),
            Some("gzip" | "x-gzip") => Self::Gzip(Box::new(GzDecoder::new(Sink(reader)))),
            Some("deflate") => Self::Deflate(Box::new(ZlibDecoder::new(Sink(reader)))),
            Some(_) => Self::Blind(reader),
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        // Bytes that cannot be decoded reach the client all the same; only we do not know what they say.
        match self {
            Self::Plain(reader) => reader.feed(bytes),
            Self::Gzip(decoder) => drop(decoder.write_all(bytes).and_then(|()| decoder.flush())),
            Self::Deflate(decoder) => drop(decoder.write_all(bytes).and_then(|()| decoder.flush())),
            Self::Blind(_) => {}
        }
    }

    fn finish(self) -> Answer {
        match self {
            Self::Plain(reader) | Self::Blind(reader) => reader.finish(),
            Self::Gzip(decoder) => decoder.finish().map(|sink| sink.0.finish()).unwrap_or_default(),
            Self::Deflate(decoder) => {
                decoder.finish().map(|sink| sink.0.finish()).unwrap_or_default()
            }
        }
    }
}

/// The body of an answer as it passes.
pub(super) struct Passing {
    inner: Incoming,
    reading: Option<(Reader, WhenDone)>,
    ping: Option<Ping>,
}

/// Watches for silence between the events of a stream.
struct Ping {
    timer: Pin<Box<Sleep>>,
    /// The last bytes that passed: an event ends with an empty line.
    tail: [u8; 2],
}

impl Ping {
    fn new() -> Self {
        Self { timer: Box::pin(tokio::time::sleep(SILENCE_MAX)), tail: *b"\n\n" }
    }

    fn heard(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().rev().take(2).rev() {
            // A carriage return before a line feed does not count.
            if *byte != b'\r' {
                self.tail = [self.tail[1], *byte];
            }
        }
        self.rest();
    }

    fn rest(&mut self) {
        self.timer.as_mut().reset(Instant::now() + SILENCE_MAX);
    }

    fn is_between_events(&self) -> bool {
        self.tail == *b"\n\n"
    }
}

impl Passing {
    /// Passes a body on and does nothing else.
    pub(super) fn untouched(inner: Incoming) -> Self {
        Self { inner, reading: None, ping: None }
    }

    /// Passes a body on, reads along, and tells what it said. With `pings`, silence is filled with them.
    pub(super) fn read(inner: Incoming, reader: Reader, done: WhenDone, pings: bool) -> Self {
        Self { inner, reading: Some((reader, done)), ping: pings.then(Ping::new) }
    }

    fn ended(&mut self, whole: bool) {
        if let Some((reader, done)) = self.reading.take() {
            done(reader.finish(), whole);
        }
    }
}

impl Body for Passing {
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
                        ping.heard(data);
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
                ping.rest();
                if ping.is_between_events() {
                    return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(PING)))));
                }
                // In the middle of an event nothing may be said; the timer must be looked at again.
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

impl Drop for Passing {
    /// The client went away: what was said until then still counts.
    fn drop(&mut self) {
        self.ended(false);
    }
}
