//! Cuts sources into pieces, and hands them on in batches.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::SyncSender;

use rb_wire::transcripts::{Importer, OWN, Unit, is_document, sniff};

use super::{Batch, Event, Limits, Piece, Source, open};

/// The batch that is being filled. Its methods answer `None` when nobody listens any more.
pub(super) struct Pile {
    batch: Batch,
    events: SyncSender<Event>,
    limits: Limits,
}

impl Pile {
    pub(super) fn new(events: SyncSender<Event>, limits: Limits) -> Self {
        Self { batch: Batch::default(), events, limits }
    }

    pub(super) fn hand_on(&mut self) -> Option<()> {
        let batch = std::mem::take(&mut self.batch);
        if batch.pieces.is_empty() {
            return Some(());
        }
        self.tell(Event::Batch(batch))
    }

    fn tell(&self, event: Event) -> Option<()> {
        self.events.send(event).ok()
    }

    pub(super) fn read_source(
        &mut self,
        source: &Arc<Source>,
        progress: &Arc<AtomicU64>,
    ) -> Option<()> {
        let mut cutter = Cutter::new(source, self);
        let result = open(source, Arc::clone(progress))
            .map_err(Stop::Io)
            .and_then(|reader| cutter.read(reader, self));
        match result {
            Ok(()) => Some(()),
            Err(Stop::NobodyListens) => None,
            Err(Stop::Unrecognised) => {
                self.batch.bytes.truncate(cutter.start);
                // Whatever came before is told before.
                self.hand_on()?;
                self.batch.bytes.clear();
                self.tell(Event::Unrecognised(Arc::clone(source)))
            }
            Err(Stop::Io(error)) => {
                // What was read up to here still counts, but not half a line; of a file that is
                // read as a whole, half is better than nothing.
                if cutter.cut == Cut::Whole && !cutter.too_long {
                    cutter.close_piece(self.batch.bytes.len(), self);
                } else {
                    self.batch.bytes.truncate(cutter.start);
                }
                self.hand_on()?;
                self.tell(Event::Failed(Arc::clone(source), error))
            }
        }
    }
}

enum Stop {
    NobodyListens,
    Unrecognised,
    Io(io::Error),
}

/// Where a source is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Not known before the end of the first line.
    Undecided,
    Lines,
    Whole,
}

/// Cuts one source into pieces at the end of the pile.
struct Cutter {
    source: Arc<Source>,
    importer: &'static Importer,
    cut: Cut,
    /// Of the piece that begins at `start`.
    number: u64,
    start: usize,
    /// The piece at `start` is being passed over.
    too_long: bool,
}

impl Cutter {
    fn new(source: &Arc<Source>, pile: &Pile) -> Self {
        Self {
            source: Arc::clone(source),
            importer: OWN,
            cut: Cut::Lines,
            number: 1,
            start: pile.batch.bytes.len(),
            too_long: false,
        }
    }

    fn read(&mut self, mut reader: impl Read, pile: &mut Pile) -> Result<(), Stop> {
        let mut begun = false;
        loop {
            let from = pile.batch.bytes.len();
            // Even where reading fails, what was read before stands at the end of the bytes.
            let chunk = reader.by_ref().take(pile.limits.chunk).read_to_end(&mut pile.batch.bytes);
            if let Ok(0) = chunk {
                self.close_piece(from, pile);
                return Ok(());
            }
            if !std::mem::replace(&mut begun, true) {
                self.recognise(&pile.batch.bytes[from..])?;
            }
            self.cut_lines(from, pile);
            chunk.map_err(Stop::Io)?;
            self.hand_on_if_full(pile).ok_or(Stop::NobodyListens)?;
        }
    }

    /// Tells the format by how the source begins. What nobody knows may be our own, with a bad line
    /// first; but not if it was only found in a folder, or holds JSON over several lines.
    fn recognise(&mut self, beginning: &[u8]) -> Result<(), Stop> {
        if let Some(importer) = sniff(beginning) {
            self.importer = importer;
            self.cut = match importer.unit {
                Unit::Line => Cut::Lines,
                Unit::Document => Cut::Undecided,
                Unit::File => Cut::Whole,
            };
            return Ok(());
        }
        let beginning = beginning.trim_ascii_start();
        let line = beginning.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let is_spread =
            line.starts_with(b"{") && line.len() < beginning.len() && !is_document(line);
        if is_spread || (self.source.is_found && !beginning.is_empty()) {
            return Err(Stop::Unrecognised);
        }
        Ok(())
    }

    fn cut_lines(&mut self, from: usize, pile: &mut Pile) {
        let mut at = from;
        while self.cut != Cut::Whole
            && let Some(len) = memchr::memchr(b'\n', &pile.batch.bytes[at..])
        {
            let end = at + len;
            let line = pile.batch.bytes.get(self.start..end).unwrap_or_default();
            if self.cut == Cut::Undecided && !line.trim_ascii().is_empty() {
                self.cut = if is_document(line) { Cut::Lines } else { Cut::Whole };
                continue;
            }
            self.close_piece(end, pile);
            self.number += 1;
            at = end + 1;
            self.start = at;
        }
    }

    fn close_piece(&mut self, end: usize, pile: &mut Pile) {
        if std::mem::take(&mut self.too_long) || self.start >= end {
            return;
        }
        pile.batch.pieces.push(Piece {
            source: Arc::clone(&self.source),
            importer: self.importer,
            number: self.number,
            is_file: self.cut != Cut::Lines,
            range: self.start..end,
        });
    }

    fn hand_on_if_full(&mut self, pile: &mut Pile) -> Option<()> {
        if pile.batch.bytes.len() >= pile.limits.batch && self.start > 0 {
            let rest = pile.batch.bytes.split_off(self.start);
            pile.hand_on()?;
            pile.batch.bytes = rest;
            self.start = 0;
        }
        let is_whole = self.cut == Cut::Whole;
        let limit = if is_whole { pile.limits.file } else { pile.limits.line };
        if !self.too_long && pile.batch.bytes.len() - self.start > limit {
            self.too_long = true;
            let source = Arc::clone(&self.source);
            pile.tell(if is_whole {
                Event::FileTooLong(source, self.importer)
            } else {
                Event::LineTooLong(source, self.number)
            })?;
        }
        if self.too_long {
            pile.batch.bytes.truncate(self.start);
            pile.batch.bytes.shrink_to(pile.limits.batch);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use proptest::prelude::*;

    use super::*;

    /// Reads texts as if they were files; answers with file, number and text of every line.
    fn lines(texts: &[String], limits: Limits) -> (Vec<String>, Vec<String>) {
        let (events, receiver) = sync_channel(2_000);
        let mut pile = Pile::new(events, limits);
        for (at, text) in texts.iter().enumerate() {
            let source = Arc::new(Source { name: at.to_string(), path: None, is_found: false });
            let mut cutter = Cutter::new(&source, &pile);
            assert!(cutter.read(text.as_bytes(), &mut pile).is_ok());
        }
        pile.hand_on();
        drop(pile);
        let (mut seen, mut too_long) = (Vec::new(), Vec::new());
        for event in receiver {
            match event {
                Event::Batch(batch) => {
                    assert!(batch.bytes.len() < limits.batch + limits.line + limits.file + 100);
                    seen.extend(batch.pieces.iter().map(|piece| {
                        let text = String::from_utf8_lossy(batch.bytes(piece));
                        format!("{}:{} {text}", piece.source.name, piece.number)
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
        /// However it is cut up, every line comes out once, whole, in order and with its number.
        #[test]
        fn lines_survive_any_cut(
            texts in prop::collection::vec("([a-z]{0,9}|\n){0,30}", 0..5),
            chunk in 1..20_u64,
            batch in 1..40_usize,
        ) {
            let expected: Vec<String> = texts.iter().enumerate().flat_map(|(file, text)| {
                let numbered = text.split('\n').enumerate().filter(|(_, line)| !line.is_empty());
                numbered.map(move |(at, line)| format!("{file}:{} {line}", at + 1)).collect::<Vec<_>>()
            }).collect();
            let (seen, too_long) = lines(&texts, Limits { chunk, batch, line: 1000, file: 2000 });
            prop_assert_eq!(seen, expected);
            prop_assert_eq!(too_long, Vec::<String>::new());
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let long = "x".repeat(500);
        let texts = [format!("a\n{long}\nb\n{long}"), "c\n".to_owned()];
        let limits = Limits { chunk: 7, batch: 20, line: 50, file: 50 };
        let (seen, too_long) = lines(&texts, limits);
        assert_eq!(seen, ["0:1 a", "0:3 b", "1:1 c"]);
        assert_eq!(too_long, ["0:2", "0:4"]);
    }

    const SMALL: Limits = Limits { chunk: 100, batch: 200, line: 1000, file: 1000 };

    #[test]
    fn files_are_cut_as_their_format_asks_for() {
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
    fn a_file_that_is_too_long_is_passed_over() {
        let event = r#"{"id": 1, "source": "user", "action": "message"}"#;
        let texts = [format!("{event}\n").repeat(50), "{\"steps\": []}".to_owned()];
        let (seen, too_long) = lines(&texts, SMALL);
        assert_eq!((seen.len(), too_long), (1, vec!["0 openhands".to_owned()]));
    }
}
