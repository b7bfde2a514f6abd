//! Where runs come from: files, folders and standard input, read ahead in batches of whole lines.
//!
//! One thread reads and decompresses while the others work. A batch is bounded and so is the number of
//! batches under way, so memory does not depend on how much there is to read.

/// What could not be read.
mod complaints;

pub(crate) use complaints::Complaints;

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use anyhow::Context as _;
use flate2::bufread::MultiGzDecoder;
use rb_wire::transcripts::{IMPORTERS, Importer, sniff};
use walkdir::WalkDir;

use crate::out::Out;

/// How much is held at once, in bytes.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// How much is read at once.
    chunk: u64,
    /// A batch is handed on when it has grown to this; a single longer line makes a longer batch.
    batch: usize,
    /// A longer line is not read at all.
    line: usize,
}

const LIMITS: Limits = Limits { chunk: 256 << 10, batch: 4 << 20, line: LINE_BYTES_MAX };
/// A longer line is not read at all.
const LINE_BYTES_MAX: usize = 256 << 20;
/// How many batches wait.
const BATCHES_WAITING_MAX: usize = 2;

const _: () = assert!(LIMITS.line > LIMITS.batch);

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The endings of the files that are read from a folder, each also with `.gz`.
const ENDINGS: [&str; 2] = [".jsonl", ".ndjson"];

/// Input at least this long is worth a progress bar.
const LONG_BYTES: u64 = 16 << 20;

/// Everything that some paths name, while it is being read.
pub(crate) struct Reading {
    /// How many files there are, standard input among them.
    pub(crate) files: usize,
    /// What could not be read so far.
    pub(crate) complaints: Complaints,
    /// Bytes there are to read, where that is known.
    bytes: Option<u64>,
    progress: Arc<AtomicU64>,
    events: Receiver<Event>,
    reader: JoinHandle<()>,
}

impl Reading {
    /// Begins to read. Paths that cannot be looked into are told at once.
    pub(crate) fn start(paths: &[PathBuf], out: &mut Out) -> anyhow::Result<Self> {
        let (sources, errors) = sources(paths);
        let mut complaints = Complaints::default();
        for error in errors {
            complaints.path(&format!("{error:#}"), out);
        }
        let (files, bytes) = (sources.len(), bytes(&sources));
        let progress = Arc::new(AtomicU64::new(0));
        let (events, reader) =
            read(sources, Arc::clone(&progress)).context("cannot start a thread")?;
        Ok(Self { files, complaints, bytes, progress, events, reader })
    }

    /// Hands over batch after batch, in order, and tells what could not be read.
    pub(crate) fn each(
        &mut self,
        out: &mut Out,
        mut take: impl FnMut(&Batch, &mut Complaints, &mut Out) -> io::Result<()>,
    ) -> io::Result<()> {
        let complaints = &mut self.complaints;
        let taken = self.events.iter().try_for_each(|event| {
            let read = self.progress.load(Ordering::Relaxed);
            if self.bytes.unwrap_or(read) >= LONG_BYTES {
                out.progress(read, self.bytes);
            }
            match event {
                Event::Batch(batch) => take(&batch, complaints, out)?,
                Event::Failed(source, error) => {
                    complaints.path(&format!("cannot read {}: {error}", source.name), out);
                }
                Event::TooLong(source, number) => {
                    let mib = LINE_BYTES_MAX >> 20;
                    complaints.line(
                        &format!(
                            "{}:{number}: the line is longer than {mib} MiB and was left out; split the run",
                            source.name
                        ),
                        out,
                    );
                }
            }
            Ok(())
        });
        out.progress_done();
        complaints.close_file(out);
        taken
    }

    /// Waits for the reading thread, which has nothing left to do.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        anyhow::ensure!(self.reader.join().is_ok(), "reading broke down; not everything was read");
        Ok(())
    }
}

/// Something that can be opened.
#[derive(Debug)]
pub(crate) struct Source {
    /// As people know it.
    pub(crate) name: String,
    /// `None` is standard input.
    path: Option<PathBuf>,
}

impl Source {
    /// The file's name without folder and endings.
    pub(crate) fn stem(&self) -> &str {
        let name = self.path.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
        let name = name.unwrap_or(if self.path.is_none() { "stdin" } else { &self.name });
        let plain = name.strip_suffix(".gz").unwrap_or(name);
        let stem = plain.rsplit_once('.').map_or(plain, |(stem, _)| stem);
        if stem.is_empty() { name } else { stem }
    }
}

/// One line of a batch.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) source: Arc<Source>,
    pub(crate) importer: &'static Importer,
    /// Counted from 1 within the source.
    pub(crate) number: u64,
    range: Range<usize>,
}

/// Whole lines, of one or several sources, in order.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    pub(crate) lines: Vec<Line>,
}

impl Batch {
    pub(crate) fn bytes(&self, line: &Line) -> &[u8] {
        self.bytes.get(line.range.clone()).unwrap_or_default()
    }
}

/// What the reading thread has to tell, in order.
#[derive(Debug)]
enum Event {
    Batch(Batch),
    /// This source could not be read, or not to its end.
    Failed(Arc<Source>, io::Error),
    /// This line is longer than [`LINE_BYTES_MAX`] and was passed over.
    TooLong(Arc<Source>, u64),
}

/// Everything the paths name, in order. Paths that cannot be looked into are errors of their own.
fn sources(paths: &[PathBuf]) -> (Vec<Arc<Source>>, Vec<anyhow::Error>) {
    let (mut sources, mut errors) = (Vec::new(), Vec::new());
    for path in paths {
        if path == Path::new("-") {
            sources.push(Arc::new(Source { name: "<stdin>".to_owned(), path: None }));
        } else if path.is_dir() {
            match in_folder(path) {
                Ok(found) => sources.extend(found),
                Err(error) => errors.push(error),
            }
        } else {
            sources.push(file(path.clone()));
        }
    }
    (sources, errors)
}

fn file(path: PathBuf) -> Arc<Source> {
    Arc::new(Source { name: path.display().to_string(), path: Some(path) })
}

fn in_folder(folder: &Path) -> anyhow::Result<Vec<Arc<Source>>> {
    let mut found = Vec::new();
    for entry in WalkDir::new(folder).follow_links(true).sort_by_file_name() {
        let entry = entry.with_context(|| format!("cannot look into {}", folder.display()))?;
        let name = entry.file_name().to_string_lossy();
        let plain = name.strip_suffix(".gz").unwrap_or(&name);
        if !entry.file_type().is_dir() && ENDINGS.iter().any(|ending| plain.ends_with(ending)) {
            found.push(file(entry.into_path()));
        }
    }
    anyhow::ensure!(
        !found.is_empty(),
        "{} holds no transcripts (*.jsonl, *.ndjson, also with .gz); name the files themselves if theirs end differently",
        folder.display()
    );
    Ok(found)
}

/// How many bytes there are to read, as far as anybody knows.
fn bytes(sources: &[Arc<Source>]) -> Option<u64> {
    let len = |source: &Arc<Source>| {
        let meta = source.path.as_ref().and_then(|path| path.metadata().ok());
        meta.filter(std::fs::Metadata::is_file).map(|meta| meta.len())
    };
    sources.iter().map(len).sum()
}

/// Reads the sources on a thread of its own. The thread ends when the receiver is gone.
fn read(
    sources: Vec<Arc<Source>>,
    progress: Arc<AtomicU64>,
) -> io::Result<(Receiver<Event>, JoinHandle<()>)> {
    let (events, receiver) = sync_channel(BATCHES_WAITING_MAX);
    let work = move || {
        let mut pile = Pile { batch: Batch::default(), events, limits: LIMITS };
        for source in sources {
            if pile.read_source(&source, &progress).is_none() {
                return;
            }
        }
        pile.hand_on();
    };
    let thread = thread::Builder::new().name("read".to_owned()).spawn(work)?;
    Ok((receiver, thread))
}

/// The batch that is being filled. Its methods answer `None` when nobody listens any more.
struct Pile {
    batch: Batch,
    events: SyncSender<Event>,
    limits: Limits,
}

impl Pile {
    fn hand_on(&mut self) -> Option<()> {
        let batch = std::mem::take(&mut self.batch);
        if batch.lines.is_empty() {
            return Some(());
        }
        self.tell(Event::Batch(batch))
    }

    fn tell(&self, event: Event) -> Option<()> {
        self.events.send(event).ok()
    }

    fn read_source(&mut self, source: &Arc<Source>, progress: &Arc<AtomicU64>) -> Option<()> {
        let mut lines = Lines::new(source, self);
        let result = open(source, Arc::clone(progress))
            .map_err(Stop::Io)
            .and_then(|reader| lines.read(reader, self));
        match result {
            Ok(()) => Some(()),
            Err(Stop::NobodyListens) => None,
            Err(Stop::Io(error)) => {
                // What was read up to here still counts, but not half a line.
                self.batch.bytes.truncate(lines.start);
                self.hand_on()?;
                self.tell(Event::Failed(Arc::clone(source), error))
            }
        }
    }
}

enum Stop {
    NobodyListens,
    Io(io::Error),
}

/// Cuts one source into lines at the end of the pile.
struct Lines {
    source: Arc<Source>,
    importer: &'static Importer,
    /// Of the line that begins at `start`.
    number: u64,
    start: usize,
    /// The line at `start` is being passed over.
    too_long: bool,
}

impl Lines {
    fn new(source: &Arc<Source>, pile: &Pile) -> Self {
        Self {
            source: Arc::clone(source),
            importer: &IMPORTERS[0],
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
                self.close_line(from, pile);
                return Ok(());
            }
            if !std::mem::replace(&mut begun, true) {
                self.importer = sniff(&pile.batch.bytes[from..]).unwrap_or(&IMPORTERS[0]);
            }
            let mut at = from;
            while let Some(line) = pile.batch.bytes[at..].iter().position(|byte| *byte == b'\n') {
                self.close_line(at + line, pile);
                self.number += 1;
                at += line + 1;
                self.start = at;
            }
            chunk.map_err(Stop::Io)?;
            self.hand_on_if_full(pile).ok_or(Stop::NobodyListens)?;
        }
    }

    fn close_line(&mut self, end: usize, pile: &mut Pile) {
        if std::mem::take(&mut self.too_long) || self.start == end {
            return;
        }
        pile.batch.lines.push(Line {
            source: Arc::clone(&self.source),
            importer: self.importer,
            number: self.number,
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
        if !self.too_long && pile.batch.bytes.len() - self.start > pile.limits.line {
            self.too_long = true;
            pile.tell(Event::TooLong(Arc::clone(&self.source), self.number))?;
        }
        if self.too_long {
            pile.batch.bytes.truncate(self.start);
            pile.batch.bytes.shrink_to(pile.limits.batch);
        }
        Some(())
    }
}

fn open(source: &Source, progress: Arc<AtomicU64>) -> io::Result<Box<dyn Read>> {
    let raw: Box<dyn Read> = match &source.path {
        Some(path) => Box::new(File::open(path)?),
        None => Box::new(io::stdin()),
    };
    let mut raw = BufReader::with_capacity(128 << 10, Counted { raw, progress });
    let mut magic = Vec::new();
    raw.by_ref().take(2).read_to_end(&mut magic)?;
    let compressed = magic == GZIP_MAGIC;
    let whole = Cursor::new(magic).chain(raw);
    if compressed {
        return Ok(Box::new(MultiGzDecoder::new(whole)));
    }
    Ok(Box::new(whole))
}

/// Counts what is read, before it is decompressed.
struct Counted {
    raw: Box<dyn Read>,
    progress: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.raw.read(buffer)?;
        self.progress.fetch_add(u64::try_from(read).unwrap_or(0), Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads texts as if they were files; answers with file, number and text of every line.
    fn lines(texts: &[String], limits: Limits) -> (Vec<String>, Vec<String>) {
        let (events, receiver) = sync_channel(2_000);
        let mut pile = Pile { batch: Batch::default(), events, limits };
        for (at, text) in texts.iter().enumerate() {
            let source = Arc::new(Source { name: at.to_string(), path: None });
            let mut lines = Lines::new(&source, &pile);
            assert!(lines.read(text.as_bytes(), &mut pile).is_ok());
        }
        pile.hand_on();
        drop(pile);
        let (mut seen, mut too_long) = (Vec::new(), Vec::new());
        for event in receiver {
            match event {
                Event::Batch(batch) => {
                    assert!(batch.bytes.len() < limits.batch + limits.line + 100);
                    seen.extend(batch.lines.iter().map(|line| {
                        let text = String::from_utf8_lossy(batch.bytes(line));
                        format!("{}:{} {text}", line.source.name, line.number)
                    }));
                }
                Event::TooLong(source, number) => {
                    too_long.push(format!("{}:{number}", source.name));
                }
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
            let (seen, too_long) = lines(&texts, Limits { chunk, batch, line: 1000 });
            prop_assert_eq!(seen, expected);
            prop_assert_eq!(too_long, Vec::<String>::new());
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let long = "x".repeat(500);
        let texts = [format!("a\n{long}\nb\n{long}"), "c\n".to_owned()];
        let limits = Limits { chunk: 7, batch: 20, line: 50 };
        let (seen, too_long) = lines(&texts, limits);
        assert_eq!(seen, ["0:1 a", "0:3 b", "1:1 c"]);
        assert_eq!(too_long, ["0:2", "0:4"]);
    }
}
