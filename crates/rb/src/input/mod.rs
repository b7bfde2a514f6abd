//! Where runs come from: files, folders and standard input, read ahead in batches of whole pieces.
//!
//! What a piece is depends on the format, which is told by how the file begins: a line, or the whole file.
//! One thread reads and decompresses while the others work. A batch is bounded and so is the number of
//! batches under way, so memory does not depend on how much there is to read.

/// What could not be read.
mod complaints;
/// Sources cut into pieces.
mod pile;

pub(crate) use complaints::Complaints;

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};

use anyhow::Context as _;
use flate2::bufread::MultiGzDecoder;
use rb_server::recorded;
use rb_wire::transcripts::{Importer, Trouble};
use walkdir::WalkDir;

use self::pile::Pile;
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
    /// A longer file of a format that must be read as a whole is not read at all.
    file: usize,
}

const LIMITS: Limits =
    Limits { chunk: 256 << 10, batch: 4 << 20, line: LINE_BYTES_MAX, file: FILE_BYTES_MAX };
/// A longer line is not read at all.
const LINE_BYTES_MAX: usize = 256 << 20;
/// A longer file is not read at all, if its lines do not stand for themselves.
const FILE_BYTES_MAX: usize = 512 << 20;
/// How many batches wait.
const BATCHES_WAITING_MAX: usize = 2;

const _: () = assert!(LIMITS.line > LIMITS.batch && LIMITS.file >= LIMITS.line);

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The endings of the files that are read from a folder, each also with `.gz`.
const ENDINGS: [&str; 5] = [".jsonl", ".ndjson", ".json", ".traj", ".log"];

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
                Event::LineTooLong(source, number) => {
                    let mib = LINE_BYTES_MAX >> 20;
                    let place = format!("{}:{number}", source.name);
                    let text = format!("{place}: the line is longer than {mib} MiB and was left out; split the run");
                    complaints.line(&text, out);
                }
                Event::FileTooLong(source, importer) => {
                    let mib = FILE_BYTES_MAX >> 20;
                    let text = format!(
                        "{}: the file is longer than {mib} MiB and was left out; the format `{}` is read as a whole, so split it",
                        source.name, importer.id
                    );
                    complaints.path(&text, out);
                }
                Event::Unrecognised(source) if source.is_found => complaints.left_out(&source.name),
                Event::Unrecognised(source) => {
                    complaints.path(&format!("{}: {}", source.name, Trouble::Unrecognised), out);
                }
            }
            Ok(())
        });
        out.progress_done();
        complaints.close_file(out);
        complaints.tell_left_out(out);
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
    /// It was found in a folder, not named by the user.
    is_found: bool,
}

impl Source {
    pub(crate) fn is_stdin(&self) -> bool {
        self.path.is_none()
    }

    /// The file's name without folder and endings.
    pub(crate) fn stem(&self) -> &str {
        recorded::stem(if self.path.is_none() { "stdin" } else { &self.name })
    }
}

/// One piece of a batch: a line, or a whole file.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) source: Arc<Source>,
    pub(crate) importer: &'static Importer,
    /// The line that it begins with, counted from 1 within the source.
    pub(crate) number: u64,
    is_file: bool,
    range: Range<usize>,
}

impl Piece {
    /// What to call a run of this piece that has no name: it is one `of` so many, counted from 0.
    pub(crate) fn place(&self, at: usize, of: usize) -> String {
        recorded::place(&self.source.name, self.line(), at, of)
    }

    /// The same without the folder, for names that must outlive it.
    pub(crate) fn name(&self, at: usize, of: usize) -> String {
        recorded::place(self.source.stem(), self.line(), at, of)
    }

    /// The line that it is; `None` for a whole file.
    pub(crate) fn line(&self) -> Option<u64> {
        (!self.is_file).then_some(self.number)
    }
}

/// Whole pieces, of one or several sources, in order.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    pub(crate) pieces: Vec<Piece>,
}

impl Batch {
    pub(crate) fn bytes(&self, piece: &Piece) -> &[u8] {
        self.bytes.get(piece.range.clone()).unwrap_or_default()
    }
}

/// What the reading thread has to tell, in order.
#[derive(Debug)]
enum Event {
    Batch(Batch),
    /// This source could not be read, or not to its end.
    Failed(Arc<Source>, io::Error),
    /// This line is longer than [`LINE_BYTES_MAX`] and was passed over.
    LineTooLong(Arc<Source>, u64),
    /// This source is longer than [`FILE_BYTES_MAX`] and was passed over.
    FileTooLong(Arc<Source>, &'static Importer),
    /// Nobody knows the format of this source.
    Unrecognised(Arc<Source>),
}

/// Everything the paths name, in order. Paths that cannot be looked into are errors of their own.
fn sources(paths: &[PathBuf]) -> (Vec<Arc<Source>>, Vec<anyhow::Error>) {
    let (mut sources, mut errors) = (Vec::new(), Vec::new());
    for path in paths {
        if path == Path::new("-") {
            let name = "<stdin>".to_owned();
            sources.push(Arc::new(Source { name, path: None, is_found: false }));
        } else if path.is_dir() {
            match in_folder(path) {
                Ok(found) => sources.extend(found),
                Err(error) => errors.push(error),
            }
        } else {
            sources.push(file(path.clone(), false));
        }
    }
    (sources, errors)
}

fn file(path: PathBuf, is_found: bool) -> Arc<Source> {
    Arc::new(Source { name: path.display().to_string(), path: Some(path), is_found })
}

fn in_folder(folder: &Path) -> anyhow::Result<Vec<Arc<Source>>> {
    let mut found = Vec::new();
    for entry in WalkDir::new(folder).follow_links(true).sort_by_file_name() {
        let entry = entry.with_context(|| format!("cannot look into {}", folder.display()))?;
        let name = entry.file_name().to_string_lossy();
        let plain = name.strip_suffix(".gz").unwrap_or(&name);
        if !entry.file_type().is_dir() && ENDINGS.iter().any(|ending| plain.ends_with(ending)) {
            found.push(file(entry.into_path(), true));
        }
    }
    anyhow::ensure!(
        !found.is_empty(),
        "{} holds no transcripts ({}, also with .gz); name the files themselves if theirs end differently",
        folder.display(),
        ENDINGS.map(|ending| format!("*{ending}")).join(", ")
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
        let mut pile = Pile::new(events, LIMITS);
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
