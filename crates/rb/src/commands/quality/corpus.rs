//! Reader of labelled runs.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use rayon::prelude::*;
use rb_quality::corpus::{LabelledRun, from_imported};
use rb_wire::transcripts::Diagnostic;

use crate::input::{Batch, Chunk, Diagnostics, Reading};
use crate::ui::{Out, counted};

/// The readable runs.
#[derive(Debug, Default)]
pub(super) struct Corpus {
    pub(super) runs: Vec<LabelledRun>,
    /// Number of runs without a step.
    pub(super) empty_runs: u64,
    /// Unknown outcomes and the number of runs that have them.
    other_outcomes: BTreeMap<String, u64>,
    /// File of each set; files of the same name are separate sets.
    sets: BTreeMap<String, String>,
}

/// Reads all paths. Returns true if some input could not be read.
pub(super) fn read(paths: &[PathBuf], out: &mut Out) -> anyhow::Result<(Corpus, bool)> {
    let mut corpus = Corpus::default();
    let mut reading = Reading::start(paths, out)?;
    reading.each(out, |batch, diagnostics, out| {
        corpus.take(batch, diagnostics, out);
        io::Result::Ok(())
    })?;
    let lost = reading.diagnostics.any_loss();
    reading.finish()?;
    for (word, runs) in &corpus.other_outcomes {
        out.warning(&format!(
            "the outcome `{word}` of {} is neither `success` nor `failure` and counts as unknown",
            counted(*runs, "run")
        ));
    }
    Ok((corpus, lost))
}

/// Runs of one chunk, each with an unknown outcome if it has one, and diagnostics.
type Page = (Vec<(LabelledRun, Option<String>)>, Vec<Diagnostic>);

impl Corpus {
    fn take(&mut self, batch: &Batch, diagnostics: &mut Diagnostics, out: &mut Out) {
        let page = |chunk: &Chunk| -> Page {
            let (runs, diagnostics) = (chunk.importer.parse)(batch.bytes(chunk));
            let count = runs.len();
            let runs = runs.into_iter().enumerate();
            (
                runs.map(|(at, run)| from_imported(run, || chunk.location(at, count))).collect(),
                diagnostics,
            )
        };
        let pages: Vec<Page> = batch.chunks.par_iter().map(page).collect();
        for (chunk, (runs, found)) in batch.chunks.iter().zip(pages) {
            diagnostics.report_chunk(chunk, &found, out);
            for (run, other_outcome) in runs {
                if let Some(word) = other_outcome {
                    *self.other_outcomes.entry(word).or_default() += 1;
                }
                self.push(run, chunk);
            }
        }
    }

    fn push(&mut self, mut run: LabelledRun, chunk: &Chunk) {
        if run.steps.is_empty() {
            self.empty_runs += 1;
            return;
        }
        let (stem, file) = (chunk.source.stem(), &chunk.source.name);
        let first = self.sets.entry(stem.to_owned()).or_insert_with(|| file.clone());
        run.set = if first == file { stem.to_owned() } else { file.clone() };
        self.runs.push(run);
    }
}
