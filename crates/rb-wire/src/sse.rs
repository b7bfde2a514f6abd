//! Event streams, cut into events however the bytes arrive.
//!
//! Follows the standard: lines end in LF, CR or both; a line that begins with a colon is a comment; several `data` lines
//! of one event are joined by LF; a byte order mark at the very beginning is passed over. One thing differs: an event
//! that the end of the stream cuts off before its empty line is given all the same, because some servers leave the line
//! out and their last event is the one with the usage.

use memchr::memchr2;

/// An event that is longer than this is passed over; its bytes still reach the client, for they never go through here.
pub const EVENT_BYTES_MAX: usize = 32 << 20;

/// Room that is kept for the next event.
const KEPT_BYTES_MAX: usize = 8 << 10;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its name; empty where it has none.
    pub name: &'a [u8],
    /// What it says.
    pub data: &'a [u8],
}

/// Cuts a stream into events. Holds at most one of them.
#[derive(Debug, Default)]
pub struct Framer {
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    /// How many lines of data the event has so far.
    lines: usize,
    is_too_long: bool,
    /// The last byte was a CR: an LF that follows belongs to it.
    was_return: bool,
    has_begun: bool,
    /// Events that were passed over because of their length.
    skipped: u64,
}

impl Framer {
    /// Takes what has arrived and gives every event that it completes.
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
                self.line.shrink_to(KEPT_BYTES_MAX);
            }
        }
        self.keep(bytes);
    }

    /// The stream has ended: gives the event that was not finished, if there is one.
    pub fn finish(mut self, each: &mut dyn FnMut(Event<'_>)) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, each);
        }
        self.dispatch(each);
    }

    /// Events that were passed over because they were longer than [`EVENT_BYTES_MAX`].
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Bytes that are held until more arrive.
    pub fn held(&self) -> usize {
        self.line.len() + self.name.len() + self.data.len()
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.line.len() + bytes.len() > EVENT_BYTES_MAX {
            self.is_too_long = true;
            self.line.clear();
            // What follows of this line is held as a comment would be.
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
            b"data" if self.data.len() + value.len() > EVENT_BYTES_MAX => {
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
        if self.is_too_long {
            self.skipped += 1;
        } else if self.lines > 0 {
            each(Event { name: &self.name, data: &self.data });
        }
        self.name.clear();
        self.data.clear();
        // One long event must not cost memory for as long as the stream lives.
        self.data.shrink_to(KEPT_BYTES_MAX);
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
        let piece = vec![b'x'; EVENT_BYTES_MAX / 4];
        let mut framer = Framer::default();
        let mut events = 0;
        framer.feed(b"data: ", &mut |_| panic!("not yet"));
        for _ in 0..9 {
            framer.feed(&piece, &mut |_| panic!("not yet"));
            assert!(framer.held() <= EVENT_BYTES_MAX);
        }
        framer.feed(b"\n\n", &mut |_| panic!("too long"));
        framer.feed(b"data: next\n\n", &mut |event| events += usize::from(event.data == b"next"));
        assert_eq!((events, framer.skipped()), (1, 1));
    }
}
