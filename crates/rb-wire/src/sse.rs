//! Incremental parser for server-sent events.
//!
//! Implements the standard: lines end in LF, CR or both; a line that starts with a colon is a comment; several `data` lines
//! of one event are joined by LF; a leading byte order mark is skipped. One difference: an event
//! without the final empty line is dispatched at the end of the stream, because some servers omit the line
//! and their last event has the token counts.

use memchr::memchr2;

/// Maximum length of an event, in bytes. Longer events are skipped; clients still get them.
pub const MAX_EVENT_BYTES: usize = 32 << 20;

/// Capacity that is kept for the next event.
const KEPT_CAPACITY: usize = 8 << 10;

/// A server-sent event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Name; may be empty.
    pub name: &'a [u8],
    /// Payload.
    pub data: &'a [u8],
}

/// Splits a stream into events and buffers at most one.
#[derive(Debug, Default)]
pub struct Framer {
    /// Incomplete line.
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    /// Number of data lines of the current event.
    lines: usize,
    is_too_long: bool,
    /// The last byte was a CR; a following LF belongs to it.
    was_return: bool,
    has_begun: bool,
}

impl Framer {
    /// Reads bytes and calls `each` with every completed event.
    pub fn feed(&mut self, mut bytes: &[u8], each: &mut dyn FnMut(Event<'_>)) {
        if self.was_return && !bytes.is_empty() {
            self.was_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            let (line, is_return) = (&bytes[..end], bytes[end] == b'\r');
            bytes = &bytes[end + 1..];
            if is_return {
                match bytes {
                    [] => self.was_return = true,
                    rest => bytes = rest.strip_prefix(b"\n").unwrap_or(rest),
                }
            }
            if self.line.is_empty() {
                self.take_line(line, each);
            } else {
                self.keep(line);
                let line = std::mem::take(&mut self.line);
                self.take_line(&line, each);
                self.line = line;
                self.line.clear();
                self.line.shrink_to(KEPT_CAPACITY);
            }
        }
        self.keep(bytes);
    }

    /// Ends the stream and calls `each` with an unfinished event.
    pub fn finish(mut self, each: &mut dyn FnMut(Event<'_>)) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, each);
        }
        self.dispatch(each);
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.line.len() + bytes.len() > MAX_EVENT_BYTES {
            self.is_too_long = true;
            self.line.clear();
            // The rest of the line is treated as a comment.
            self.line.push(b':');
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn take_line(&mut self, line: &[u8], each: &mut dyn FnMut(Event<'_>)) {
        let mut line = line;
        if !self.has_begun {
            self.has_begun = true;
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(each);
            return;
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (field, value) = (&line[..colon], line.get(colon + 1..).unwrap_or_default());
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"data" if self.data.len() + value.len() > MAX_EVENT_BYTES => {
                self.is_too_long = true;
                self.data.clear();
            }
            b"data" if !self.is_too_long => {
                if self.lines > 0 {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.lines += 1;
            }
            _ => {}
        }
    }

    fn dispatch(&mut self, each: &mut dyn FnMut(Event<'_>)) {
        if self.lines > 0 && !self.is_too_long {
            each(Event { name: &self.name, data: &self.data });
        }
        self.name.clear();
        self.data.clear();
        // The memory of a long event is released.
        self.data.shrink_to(KEPT_CAPACITY);
        (self.lines, self.is_too_long) = (0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pair = (String, String);

    fn read<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> Vec<Pair> {
        let mut events = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut each = |event: Event<'_>| events.push((text(event.name), text(event.data)));
        let mut framer = Framer::default();
        chunks.for_each(|chunk| framer.feed(chunk, &mut each));
        framer.finish(&mut each);
        events
    }

    const CASES: [(&str, &[(&str, &str)]); 10] = [
        ("event: a\ndata: 1\n\ndata: 2\n\n", &[("a", "1"), ("", "2")]),
        ("event: a\r\ndata: 1\r\n\r\nevent: b\r\ndata: 2\r\n\r\n", &[("a", "1"), ("b", "2")]),
        ("data: 1\r\rdata: 2\r\r", &[("", "1"), ("", "2")]),
        ("data: 1\r\n\rdata: 2\n\r\n", &[("", "1"), ("", "2")]),
        (": a comment\n\n:\ndata: é😀\n\n", &[("", "é😀")]),
        ("data: one\ndata:two\ndata:  three\ndata\n\n", &[("", "one\ntwo\n three\n")]),
        ("event: a\n\ndata: kept\nid: 7\nretry: 1\nunknown\n\n", &[("", "kept")]),
        ("\u{feff}data: 1\n\ndata: \u{feff}2\n\n", &[("", "1"), ("", "\u{feff}2")]),
        ("data: 1\n\ndata: no end", &[("", "1"), ("", "no end")]),
        ("data:\n\n\n\n", &[("", "")]),
    ];

    #[test]
    fn events_are_the_same_however_the_stream_is_split() {
        for (stream, expected) in CASES {
            let expected: Vec<Pair> = expected
                .iter()
                .map(|(name, data)| ((*name).to_owned(), (*data).to_owned()))
                .collect();
            let bytes = stream.as_bytes();
            assert_eq!(read(bytes.chunks(1)), expected, "{stream:?} byte by byte");
            for at in 0..=bytes.len() {
                let (head, tail) = bytes.split_at(at);
                assert_eq!(read([head, tail].into_iter()), expected, "{stream:?} split at {at}");
                for then in at..=bytes.len() {
                    let chunks = [head, &bytes[at..then], &bytes[then..]];
                    assert_eq!(read(chunks.into_iter()), expected, "{stream:?} at {at}, {then}");
                }
            }
        }
    }

    #[test]
    fn an_event_without_end_is_dropped_and_the_next_is_not() {
        let piece = vec![b'x'; MAX_EVENT_BYTES / 4];
        let mut framer = Framer::default();
        let mut events = 0;
        framer.feed(b"data: ", &mut |_| panic!("not yet"));
        for _ in 0..9 {
            framer.feed(&piece, &mut |_| panic!("not yet"));
            assert!(framer.line.len() + framer.data.len() <= MAX_EVENT_BYTES);
        }
        framer.feed(b"\n\n", &mut |_| panic!("too long"));
        framer.feed(b"data: next\n\n", &mut |event| events += usize::from(event.data == b"next"));
        assert_eq!(events, 1);
    }
}
