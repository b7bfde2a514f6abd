//! Splits sources into chunks and sends them in batches.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::SyncSender;

use rb_wire::transcripts::{Importer, NATIVE, Unit, is_document, sniff};

use super::{Batch, Chunk, Event, Limits, Source, open};

/// Fills batches and sends them. Methods return `None` once the receiver is gone.
pub(super) struct Batcher {
    batch: Batch,
    events: SyncSender<Event>,
    limits: Limits,
}

impl Batcher {
    pub(super) fn new(events: SyncSender<Event>, limits: Limits) -> Self {
        Self { batch: Batch::default(), events, limits }
    }

    pub(super) fn flush(&mut self) -> Option<()> {
        let batch = std::mem::take(&mut self.batch);
        if batch.chunks.is_empty() {
            return Some(());
        }
        self.send(Event::Batch(batch))
    }

    fn send(&self, event: Event) -> Option<()> {
        self.events.send(event).ok()
    }

    pub(super) fn read_source(
        &mut self,
        source: &Arc<Source>,
        progress: &Arc<AtomicU64>,
    ) -> Option<()> {
        let mut splitter = Splitter::new(source, self);
        let result = open(source, Arc::clone(progress))
            .map_err(Stop::Io)
            .and_then(|reader| splitter.read(reader, self));
        match result {
            Ok(()) => Some(()),
            Err(Stop::ReceiverGone) => None,
            Err(Stop::Unrecognised) => {
                self.batch.bytes.truncate(splitter.start);
                self.flush()?;
                self.batch.bytes.clear();
                self.send(Event::Unrecognised(Arc::clone(source)))
            }
            Err(Stop::Io(error)) => {
                // Keeps the complete lines; of a file that is read as a whole, keeps the beginning.
                if splitter.split == Split::Whole && !splitter.too_long {
                    splitter.close_chunk(self.batch.bytes.len(), self);
                } else {
                    self.batch.bytes.truncate(splitter.start);
                }
                self.flush()?;
                self.send(Event::Failed(Arc::clone(source), error))
            }
        }
    }
}

enum Stop {
    ReceiverGone,
    Unrecognised,
    Io(io::Error),
}

/// Chunk size of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Split {
    /// Decided at the end of the first line.
    Undecided,
    Lines,
    Whole,
}

/// Splits one source into chunks at the end of the current batch.
struct Splitter {
    source: Arc<Source>,
    importer: &'static Importer,
    split: Split,
    /// Line number at `start`.
    number: u64,
    start: usize,
    /// The chunk at `start` is too long and is being skipped.
    too_long: bool,
}

impl Splitter {
    fn new(source: &Arc<Source>, batcher: &Batcher) -> Self {
        Self {
            source: Arc::clone(source),
            importer: NATIVE,
            split: Split::Lines,
            number: 1,
            start: batcher.batch.bytes.len(),
            too_long: false,
        }
    }

    fn read(&mut self, mut reader: impl Read, batcher: &mut Batcher) -> Result<(), Stop> {
        let mut begun = false;
        loop {
            let from = batcher.batch.bytes.len();
            // On an error, the bytes read before it are kept.
            let read =
                reader.by_ref().take(batcher.limits.read).read_to_end(&mut batcher.batch.bytes);
            if let Ok(0) = read {
                self.close_chunk(from, batcher);
                return Ok(());
            }
            if !std::mem::replace(&mut begun, true) {
                self.detect_format(&batcher.batch.bytes[from..])?;
            }
            self.split_lines(from, batcher);
            read.map_err(Stop::Io)?;
            self.flush_if_full(batcher).ok_or(Stop::ReceiverGone)?;
        }
    }

    /// Detects the format from the beginning of the source. An unknown beginning is taken as the native format with a
    /// bad first line, except for listed files and JSON that spans several lines.
    fn detect_format(&mut self, beginning: &[u8]) -> Result<(), Stop> {
        if let Some(importer) = sniff(beginning) {
            self.importer = importer;
            self.split = match importer.unit {
                Unit::Line => Split::Lines,
                Unit::Document => Split::Undecided,
                Unit::File => Split::Whole,
            };
            return Ok(());
        }
        let beginning = beginning.trim_ascii_start();
        let line = beginning.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let spans_lines =
            line.starts_with(b"{") && line.len() < beginning.len() && !is_document(line);
        if spans_lines || (self.source.is_listed && !beginning.is_empty()) {
            return Err(Stop::Unrecognised);
        }
        Ok(())
    }

    fn split_lines(&mut self, from: usize, batcher: &mut Batcher) {
        let mut at = from;
        while self.split != Split::Whole
            && let Some(len) = memchr::memchr(b'\n', &batcher.batch.bytes[at..])
        {
            let end = at + len;
            let line = batcher.batch.bytes.get(self.start..end).unwrap_or_default();
            if self.split == Split::Undecided && !line.trim_ascii().is_empty() {
                self.split = if is_document(line) { Split::Lines } else { Split::Whole };
                continue;
            }
            self.close_chunk(end, batcher);
            self.number += 1;
            at = end + 1;
            self.start = at;
        }
    }

    fn close_chunk(&mut self, end: usize, batcher: &mut Batcher) {
        if std::mem::take(&mut self.too_long) || self.start >= end {
            return;
        }
        batcher.batch.chunks.push(Chunk {
            source: Arc::clone(&self.source),
            importer: self.importer,
            number: self.number,
            is_file: self.split != Split::Lines,
            range: self.start..end,
        });
    }

    fn flush_if_full(&mut self, batcher: &mut Batcher) -> Option<()> {
        if batcher.batch.bytes.len() >= batcher.limits.batch && self.start > 0 {
            let rest = batcher.batch.bytes.split_off(self.start);
            batcher.flush()?;
            batcher.batch.bytes = rest;
            self.start = 0;
        }
        let is_whole = self.split == Split::Whole;
        let limit = if is_whole { batcher.limits.file } else { batcher.limits.line };
        if !self.too_long && batcher.batch.bytes.len() - self.start > limit {
            self.too_long = true;
            let source = Arc::clone(&self.source);
            batcher.send(if is_whole {
                Event::FileTooLong(source, self.importer)
            } else {
                Event::LineTooLong(source, self.number)
            })?;
        }
        if self.too_long {
            batcher.batch.bytes.truncate(self.start);
            batcher.batch.bytes.shrink_to(batcher.limits.batch);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use proptest::prelude::*;

    use super::*;

    /// Reads texts as files; returns file, line number and text of every chunk, and what was too long.
    fn lines(texts: &[String], limits: Limits) -> (Vec<String>, Vec<String>) {
        let (events, receiver) = sync_channel(2_000);
        let mut batcher = Batcher::new(events, limits);
        for (at, text) in texts.iter().enumerate() {
            let source = Arc::new(Source { name: at.to_string(), path: None, is_listed: false });
            let mut splitter = Splitter::new(&source, &batcher);
            assert!(splitter.read(text.as_bytes(), &mut batcher).is_ok());
        }
        batcher.flush();
        drop(batcher);
        let (mut seen, mut too_long) = (Vec::new(), Vec::new());
        for event in receiver {
            match event {
                Event::Batch(batch) => {
                    assert!(batch.bytes.len() < limits.batch + limits.line + limits.file + 100);
                    seen.extend(batch.chunks.iter().map(|chunk| {
                        let text = String::from_utf8_lossy(batch.bytes(chunk));
                        format!("{}:{} {text}", chunk.source.name, chunk.number)
                    }));
                }
                Event::LineTooLong(source, number) => {
                    too_long.push(format!("{}:{number}", source.name));
                }
                Event::FileTooLong(source, importer) => {
                    too_long.push(format!("{} {}", source.name, importer.id));
                }
                Event::Unrecognised(source) => panic!("{source:?}"),
                Event::Failed(source, error) => panic!("{source:?} {error}"),
            }
        }
        (seen, too_long)
    }

    proptest! {
        /// Every line comes out once, complete, in order and with its number.
        #[test]
        fn lines_survive_any_read_size(
            texts in prop::collection::vec("([a-z]{0,9}|\n){0,30}", 0..5),
            read in 1..20_u64,
            batch in 1..40_usize,
        ) {
            let expected: Vec<String> = texts.iter().enumerate().flat_map(|(file, text)| {
                let numbered = text.split('\n').enumerate().filter(|(_, line)| !line.is_empty());
                numbered.map(move |(at, line)| format!("{file}:{} {line}", at + 1)).collect::<Vec<_>>()
            }).collect();
            let (seen, too_long) = lines(&texts, Limits { read, batch, line: 1000, file: 2000 });
            prop_assert_eq!(seen, expected);
            prop_assert_eq!(too_long, Vec::<String>::new());
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped() {
        let long = "x".repeat(500);
        let texts = [format!("a\n{long}\nb\n{long}"), "c\n".to_owned()];
        let limits = Limits { read: 7, batch: 20, line: 50, file: 50 };
        let (seen, too_long) = lines(&texts, limits);
        assert_eq!(seen, ["0:1 a", "0:3 b", "1:1 c"]);
        assert_eq!(too_long, ["0:2", "0:4"]);
    }

    const SMALL: Limits = Limits { read: 100, batch: 200, line: 1000, file: 1000 };

    #[test]
    fn the_format_decides_how_files_are_split() {
        let event =
            r#"{"id": 1, "source": "user", "action": "message", "args": {"content": "hi"}}"#;
        let chat = r#"{"messages": [{"role": "user", "content": "hi"}]}"#;
        let wide = chat.replace(", ", ",\n");
        let texts = [
            format!("{event}\n{event}\n"),
            format!("{chat}\n{chat}\n"),
            wide.clone(),
            format!("\n\n{chat}"),
            "{\"steps\": []}\n{\"steps\": []}".to_owned(),
        ];
        let (seen, too_long) = lines(&texts, SMALL);
        let expected = [
            format!("0:1 {event}\n{event}\n"),
            format!("1:1 {chat}"),
            format!("1:2 {chat}"),
            format!("2:1 {wide}"),
            format!("3:3 {chat}"),
            "4:1 {\"steps\": []}".to_owned(),
            "4:2 {\"steps\": []}".to_owned(),
        ];
        assert_eq!((seen, too_long), (expected.to_vec(), Vec::new()));
    }

    #[test]
    fn a_file_that_is_too_long_is_skipped() {
        let event = r#"{"id": 1, "source": "user", "action": "message"}"#;
        let texts = [format!("{event}\n").repeat(50), "{\"steps\": []}".to_owned()];
        let (seen, too_long) = lines(&texts, SMALL);
        assert_eq!((seen.len(), too_long), (1, vec!["0 openhands".to_owned()]));
    }
}
