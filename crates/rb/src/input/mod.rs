//! Reader of transcripts from files, directories and standard input.
//!
//! A background thread reads and decompresses ahead in batches of whole chunks. The format, detected from the first
//! bytes, decides whether a chunk is a line or a whole file. The size and the number of batches are bounded, so memory
//! use does not depend on the input.

/// Splits sources into batches of chunks.
mod batcher;
/// Errors and warnings about the input.
mod diagnostics;

pub(crate) use diagnostics::Diagnostics;

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
use rb_runtime::import;
use rb_wire::transcripts::{DiagnosticKind, Importer};
use walkdir::WalkDir;

use self::batcher::Batcher;
use crate::ui::Out;

/// Buffer sizes in bytes.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Size of one read.
    read: u64,
    /// Size at which a batch is sent; a single longer line makes a longer batch.
    batch: usize,
    /// Maximum length of a line.
    line: usize,
    /// Maximum length of a file whose format is read as a whole.
    file: usize,
}

const LIMITS: Limits =
    Limits { read: 256 << 10, batch: 4 << 20, line: MAX_LINE_BYTES, file: MAX_FILE_BYTES };
const MAX_LINE_BYTES: usize = 256 << 20;
const MAX_FILE_BYTES: usize = 512 << 20;
/// Maximum number of batches in the queue.
const QUEUE_CAPACITY: usize = 2;

const _: () = assert!(LIMITS.line > LIMITS.batch && LIMITS.file >= LIMITS.line);

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Extensions of the files that are read from a directory, each also with `.gz`.
const EXTENSIONS: [&str; 5] = [".jsonl", ".ndjson", ".json", ".traj", ".log"];

/// Input size from which a progress bar is shown.
const PROGRESS_MIN_BYTES: u64 = 16 << 20;

/// Input in progress.
pub(crate) struct Reading {
    /// Number of files, including standard input.
    pub(crate) files: usize,
    pub(crate) diagnostics: Diagnostics,
    /// Total size if known.
    bytes: Option<u64>,
    progress: Arc<AtomicU64>,
    events: Receiver<Event>,
    reader: JoinHandle<()>,
}

impl Reading {
    /// Starts reading. Directories that cannot be listed are reported immediately.
    pub(crate) fn start(paths: &[PathBuf], out: &mut Out) -> anyhow::Result<Self> {
        let (sources, errors) = sources(paths);
        let mut diagnostics = Diagnostics::default();
        for error in errors {
            diagnostics.bad_path(&format!("{error:#}"), out);
        }
        let (files, bytes) = (sources.len(), bytes(&sources));
        let progress = Arc::new(AtomicU64::new(0));
        let (events, reader) =
            read(sources, Arc::clone(&progress)).context("cannot start a thread")?;
        Ok(Self { files, diagnostics, bytes, progress, events, reader })
    }

    /// Passes each batch to `take`, in order, and reports what could not be read.
    pub(crate) fn each(
        &mut self,
        out: &mut Out,
        mut take: impl FnMut(&Batch, &mut Diagnostics, &mut Out) -> io::Result<()>,
    ) -> io::Result<()> {
        let diagnostics = &mut self.diagnostics;
        let taken = self.events.iter().try_for_each(|event| {
            let read = self.progress.load(Ordering::Relaxed);
            if self.bytes.unwrap_or(read) >= PROGRESS_MIN_BYTES {
                out.progress(read, self.bytes);
            }
            match event {
                Event::Batch(batch) => take(&batch, diagnostics, out)?,
                Event::Failed(source, error) => {
                    diagnostics.bad_path(&format!("cannot read {}: {error}", source.name), out);
                }
                Event::LineTooLong(source, number) => {
                    let mib = MAX_LINE_BYTES >> 20;
                    let place = format!("{}:{number}", source.name);
                    let text = format!("{place}: the line is longer than {mib} MiB and was skipped; split the run");
                    diagnostics.bad_line(&text, out);
                }
                Event::FileTooLong(source, importer) => {
                    let mib = MAX_FILE_BYTES >> 20;
                    let text = format!(
                        "{}: the file is longer than {mib} MiB and was skipped; the format `{}` is read as a whole, so split the file",
                        source.name, importer.id
                    );
                    diagnostics.bad_path(&text, out);
                }
                Event::Unrecognised(source) if source.is_listed => diagnostics.skip(&source.name),
                Event::Unrecognised(source) => {
                    diagnostics.bad_path(&format!("{}: {}", source.name, DiagnosticKind::Unrecognised), out);
                }
            }
            Ok(())
        });
        out.progress_done();
        diagnostics.close(out);
        taken
    }

    /// Joins the reading thread.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.reader.join().is_ok(),
            "the reading thread panicked; the input is incomplete"
        );
        Ok(())
    }
}

/// A file or standard input.
#[derive(Debug)]
pub(crate) struct Source {
    /// Display name.
    pub(crate) name: String,
    /// `None` for standard input.
    path: Option<PathBuf>,
    /// Found by listing a directory, not named by the user.
    is_listed: bool,
}

impl Source {
    pub(crate) fn is_stdin(&self) -> bool {
        self.path.is_none()
    }

    /// Returns the file name without directory and extensions.
    pub(crate) fn stem(&self) -> &str {
        import::file_stem(if self.path.is_none() { "stdin" } else { &self.name })
    }
}

/// Part of a batch that is parsed at once: a line or a whole file.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) source: Arc<Source>,
    pub(crate) importer: &'static Importer,
    /// First line of the chunk within the source, counted from 1.
    pub(crate) number: u64,
    is_file: bool,
    range: Range<usize>,
}

impl Chunk {
    /// Returns a fallback id for run `at` of `of` in this chunk, with the path of the file.
    pub(crate) fn location(&self, at: usize, of: usize) -> String {
        import::fallback_run_id(&self.source.name, self.line(), at, of)
    }

    /// Returns a fallback id without the directory, which stays valid if the file moves.
    pub(crate) fn fallback_run_id(&self, at: usize, of: usize) -> String {
        import::fallback_run_id(self.source.stem(), self.line(), at, of)
    }

    /// Returns the line number, or `None` for a whole file.
    pub(crate) fn line(&self) -> Option<u64> {
        (!self.is_file).then_some(self.number)
    }
}

/// Consecutive chunks of one or several sources.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    pub(crate) chunks: Vec<Chunk>,
}

impl Batch {
    pub(crate) fn bytes(&self, chunk: &Chunk) -> &[u8] {
        self.bytes.get(chunk.range.clone()).unwrap_or_default()
    }
}

/// Message from the reading thread.
#[derive(Debug)]
enum Event {
    Batch(Batch),
    /// The source could not be read to its end.
    Failed(Arc<Source>, io::Error),
    /// A line longer than [`MAX_LINE_BYTES`] was skipped.
    LineTooLong(Arc<Source>, u64),
    /// A source longer than [`MAX_FILE_BYTES`] was skipped.
    FileTooLong(Arc<Source>, &'static Importer),
    /// The source has no known format.
    Unrecognised(Arc<Source>),
}

/// Expands the paths to files, in order, with an error for each directory that cannot be listed.
fn sources(paths: &[PathBuf]) -> (Vec<Arc<Source>>, Vec<anyhow::Error>) {
    let (mut sources, mut errors) = (Vec::new(), Vec::new());
    for path in paths {
        if path == Path::new("-") {
            let name = "<stdin>".to_owned();
            sources.push(Arc::new(Source { name, path: None, is_listed: false }));
        } else if path.is_dir() {
            list(path, &mut sources, &mut errors);
        } else {
            sources.push(file(path.clone(), false));
        }
    }
    (sources, errors)
}

fn file(path: PathBuf, is_listed: bool) -> Arc<Source> {
    Arc::new(Source { name: path.display().to_string(), path: Some(path), is_listed })
}

/// Adds the transcripts below a directory. An unreadable subdirectory does not hide the others.
fn list(dir: &Path, sources: &mut Vec<Arc<Source>>, errors: &mut Vec<anyhow::Error>) {
    let (files_before, errors_before) = (sources.len(), errors.len());
    for entry in WalkDir::new(dir).follow_links(true).sort_by_file_name() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                errors.push(anyhow::anyhow!("cannot list {}: {error}", dir.display()));
                continue;
            }
        };
        let name = entry.file_name().to_string_lossy();
        let plain = name.strip_suffix(".gz").unwrap_or(&name);
        if !entry.file_type().is_dir() && EXTENSIONS.iter().any(|ending| plain.ends_with(ending)) {
            sources.push(file(entry.into_path(), true));
        }
    }
    if (files_before, errors_before) == (sources.len(), errors.len()) {
        errors.push(anyhow::anyhow!(
            "no transcripts in {} ({}, also with .gz); name files with other extensions explicitly",
            dir.display(),
            EXTENSIONS.map(|ending| format!("*{ending}")).join(", ")
        ));
    }
}

/// Returns the total size, or `None` if a source is not a regular file.
fn bytes(sources: &[Arc<Source>]) -> Option<u64> {
    let len = |source: &Arc<Source>| {
        let meta = source.path.as_ref().and_then(|path| path.metadata().ok());
        meta.filter(std::fs::Metadata::is_file).map(|meta| meta.len())
    };
    sources.iter().map(len).sum()
}

/// Reads the sources on a new thread, which ends early if the receiver is dropped.
fn read(
    sources: Vec<Arc<Source>>,
    progress: Arc<AtomicU64>,
) -> io::Result<(Receiver<Event>, JoinHandle<()>)> {
    let (events, receiver) = sync_channel(QUEUE_CAPACITY);
    let work = move || {
        let mut batcher = Batcher::new(events, LIMITS);
        for source in sources {
            if batcher.read_source(&source, &progress).is_none() {
                return;
            }
        }
        batcher.flush();
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

/// Counts the bytes read, before decompression.
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
