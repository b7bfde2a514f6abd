//! `cargo lab-quality`: evaluates the monitors on labelled runs and on injected faults, and writes `docs/figures.json`.
#![expect(clippy::print_stdout, reason = "prints the report")]

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use flate2::read::MultiGzDecoder;
use rb_engine::analysis::embedding::Vector;
use rb_engine::config::EngineConfig;
use rb_engine::monitors::SuiteChoice;
use rb_engine::policy::Policy;
use rb_quality::corpus::{LabelledRun, Split, from_imported};
use rb_quality::evaluation::{Options, evaluate};
use rb_quality::scorer::{Scorer, StepCount, SuiteScorer};
use rb_quality::table::table;
use rb_wire::transcripts::sniff;

use crate::fault_injection::inject_all;

/// Successful runs with injected faults.
mod fault_injection;
/// Detection of injected faults.
mod faults;
/// Sums per monitor, for `docs/figures.json`.
mod figures;

const USAGE: &str = "\
cargo lab-quality [option]... FILE...

Each FILE is a set of labelled runs: transcripts in any supported format, also with gzip.

  --figures PATH     write sums per monitor as JSON; docs/figures.json comes from the six plain .jsonl sets
  --faults N         maximum number of injected faults per kind and set (default 60)
  --show-faults N    print N injected faults per kind and set, from tasks that are not held out, and measure nothing
  --seed N           seed of faults and intervals (default 1)
";

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let (mut files, mut figures, mut show) = (Vec::new(), None, None);
    let (mut max_faults, mut seed) = (60, 1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("missing value: {arg}"));
        match arg.as_str() {
            "--figures" => figures = Some(PathBuf::from(value()?)),
            "--faults" => max_faults = value()?.parse()?,
            "--show-faults" => show = Some(value()?.parse()?),
            "--seed" => seed = value()?.parse()?,
            "--help" | "-h" => files.clear(),
            option if option.starts_with('-') => bail!("unknown option: {option}\n\n{USAGE}"),
            file => files.push(PathBuf::from(file)),
        }
    }
    if files.is_empty() {
        print!("{USAGE}");
        return Ok(());
    }
    let runs = read(&files)?;
    if let Some(count) = show {
        let faults = inject_all(&runs, count, seed);
        faults.iter().filter(|fault| Split::Dev.contains(&fault.run)).for_each(faults::print);
        return Ok(());
    }
    let (semantic, heuristic) = (suite(SuiteChoice::Semantic)?, suite(SuiteChoice::Heuristic)?);
    let scorers: [&dyn Scorer; 3] = [&semantic, &heuristic, &StepCount];
    let report = evaluate(&runs, &scorers, &Options { seed, ..Options::default() }, &());
    let detections = faults::detect(&inject_all(&runs, max_faults, seed), &scorers);
    print!("{}\n{}", table(&report, &|_, text| text.to_owned()), faults::table(&detections));
    if let Some(path) = figures {
        let json = serde_json::to_string_pretty(&figures::sum(&report, &detections))?;
        fs::write(&path, json + "\n")
            .with_context(|| format!("cannot write: {}", path.display()))?;
    }
    Ok(())
}

fn suite(suite: SuiteChoice) -> Result<SuiteScorer> {
    let engine = EngineConfig::with_policy(Policy::only(suite)).check()?;
    let embedder = |text: &str| Vector::of(rb_embed::embed(text).values());
    Ok(SuiteScorer::new(engine.with_embedder(Arc::new(embedder))))
}

/// Reads sets. The name of a set is the name of its file up to the first dot.
fn read(files: &[PathBuf]) -> Result<Vec<LabelledRun>> {
    let mut runs = Vec::new();
    for file in files {
        let text = content(file).with_context(|| format!("cannot read: {}", file.display()))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let set = name.split('.').next().unwrap_or_default();
        let importer =
            sniff(&text).with_context(|| format!("unknown format: {}", file.display()))?;
        let (parsed, diagnostics) = (importer.parse)(&text);
        if let Some(diagnostic) = diagnostics.first() {
            bail!(
                "{} problems in {}; the first: {diagnostic:?}",
                diagnostics.len(),
                file.display()
            );
        }
        for (at, run) in parsed.into_iter().enumerate() {
            let (run, _) = from_imported(run, || format!("{set}:{at}"));
            if !run.steps.is_empty() {
                runs.push(LabelledRun { set: set.to_owned(), ..run });
            }
        }
    }
    Ok(runs)
}

fn content(file: &Path) -> Result<Vec<u8>> {
    let bytes = fs::read(file)?;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut text = Vec::new();
    MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data is not part of the repository; without it the test reports that it is skipped.
    #[test]
    fn published_figures_are_reproduced() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let sets = [
            "bashkit_eval",
            "hotpot_react_gpt3",
            "swebv_mini_gemini3",
            "tau_airline_gpt4o",
            "trail",
            "who_and_when",
        ];
        let files = sets.map(|set| root.join(format!("../shared/data/{set}.jsonl")));
        if !files.iter().all(|file| file.is_file()) {
            println!("skipped: the labelled runs are not in ../shared/data");
            return;
        }
        let runs = read(&files).expect("read the sets");
        let (semantic, heuristic) = (
            suite(SuiteChoice::Semantic).expect("a valid configuration"),
            suite(SuiteChoice::Heuristic).expect("a valid configuration"),
        );
        let scorers: [&dyn Scorer; 2] = [&semantic, &heuristic];
        // Figures contain no interval.
        let options = Options { resamples: 1, ..Options::default() };
        let report = evaluate(&runs, &scorers, &options, &());
        let detections = faults::detect(&inject_all(&runs, 60, 1), &scorers);
        let json = serde_json::to_string_pretty(&figures::sum(&report, &detections)).expect("JSON");
        let published =
            fs::read_to_string(root.join("docs/figures.json")).expect("read the figures");
        assert!(
            json + "\n" == published,
            "docs/figures.json is stale; `cargo lab-quality --figures` updates it"
        );
    }
}
