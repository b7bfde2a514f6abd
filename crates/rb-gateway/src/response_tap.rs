//! An answer on its way to the client: the bytes as they come, a reader beside them, and a sign of life in silence.

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

/// Takes what the answer told, and whether it came to its end here.
pub(crate) type WhenDone = Box<dyn FnOnce(Response, bool) + Send>;

/// Reads an answer in the encoding it comes in.
pub(crate) enum Reader {
    Plain(ResponseReader),
    Gzip(Box<GzDecoder<Sink>>),
    Deflate(Box<ZlibDecoder<Sink>>),
    /// In an encoding nobody here can read.
    Blind(ResponseReader),
    /// It failed on something; what it knew is in doubt.
    Broken,
    /// Fails on everything.
    #[cfg(test)]
    Panics,
}

/// Where decoded bytes go.
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
            Some(_) => Self::Blind(reader),
        }
    }

    /// Reads along. Should the reader panic, the answer passes on unread.
    fn feed(&mut self, bytes: &[u8]) {
        if catch_unwind(AssertUnwindSafe(|| self.read(bytes))).is_err() {
            *self = Self::Broken;
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        // Bytes that cannot be decoded reach the client all the same; only we do not know what they say.
        match self {
            Self::Plain(reader) => reader.feed(bytes),
            Self::Gzip(decoder) => drop(decoder.write_all(bytes).and_then(|()| decoder.flush())),
            Self::Deflate(decoder) => drop(decoder.write_all(bytes).and_then(|()| decoder.flush())),
            Self::Blind(_) | Self::Broken => {}
            #[cfg(test)]
            Self::Panics => panic!("injected"),
        }
    }

    fn finish(self) -> Response {
        catch_unwind(AssertUnwindSafe(|| self.answer())).unwrap_or_default()
    }

    fn answer(self) -> Response {
        match self {
            Self::Plain(reader) | Self::Blind(reader) => reader.finish(),
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

/// The body of an answer as it passes.
pub(crate) struct Passing {
    inner: Incoming,
    reading: Option<(Reader, WhenDone)>,
    ping: Option<Ping>,
}

/// Keep-alive event and the idle time after which it is sent.
pub(crate) type KeepAlive = (&'static [u8], Duration);

/// Watches for silence between the events of a stream.
struct Ping {
    event: &'static [u8],
    silence_max: Duration,
    timer: Pin<Box<Sleep>>,
    /// The last bytes that passed: an event ends with an empty line.
    tail: [u8; 2],
}

impl Ping {
    fn new((event, silence_max): KeepAlive) -> Self {
        let timer = Box::pin(tokio::time::sleep(silence_max));
        Self { event, silence_max, timer, tail: *b"\n\n" }
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
        self.timer.as_mut().reset(Instant::now() + self.silence_max);
    }

    fn is_between_events(&self) -> bool {
        self.tail == *b"\n\n"
    }
}

impl Passing {
    /// Passes a body on and does nothing else.
    pub(crate) fn untouched(inner: Incoming) -> Self {
        Self { inner, reading: None, ping: None }
    }

    /// Passes a body on, reads along, and tells what it said. Idle streams get keep-alive events.
    pub(crate) fn read(
        inner: Incoming,
        reader: Reader,
        done: WhenDone,
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
                    return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(ping.event)))));
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
