//! `cargo xtask bench check [FILES…]`: how fast `rb check` goes through transcripts, beside `jq -c .` on the same files.
//!
//! Without files, a gigabyte of made-up runs is written to a folder that goes afterwards: sessions of Claude Code, bare
//! messages and our own format, in equal parts, of the same steps as the benchmark of the engine. `RB_BENCH_MB` asks for
//! another size. Both programs write to nowhere, and everything was read once before, so that neither waits for a disk.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::report::whole;
use super::trace::{Mix, OwnedStep, trace};
use crate::{out, shell};

const MEGABYTES: u64 = 1_000;
/// Steps of one run: sessions of coding agents are about this long.
const STEPS: usize = 150;
/// A file of single lines holds so many runs.
const LINES: usize = 20;

/// Writes steps as a run with this number.
type Write = fn(&[OwnedStep], usize) -> String;

/// Ways to write a run: the format, how many in a file, and how.
const WRITERS: [(&str, usize, Write); 3] =
    [("claude-code", 1, session), ("openai-chat", LINES, messages), ("runs", LINES, own)];

pub(crate) fn run(files: &[&str]) -> Result<()> {
    shell::run(&mut shell::cargo(&["build", "--quiet", "--release", "--package", "rb"])?)?;
    let rb = shell::target()?.join("release").join("rb");
    ensure!(shell::succeeds(shell::program("jq")?.arg("--version")), "`jq` is not installed");
    if !files.is_empty() {
        return compare(&rb, &files.iter().map(PathBuf::from).collect::<Vec<_>>());
    }
    let folder = Folder::new()?;
    let files = material(&folder.0)?;
    compare(&rb, &files)
}

/// A folder that goes when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("rb-bench-check-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            out::complain(&format!("{} is still there: {error}", self.0.display()));
        }
    }
}

fn material(folder: &Path) -> Result<Vec<PathBuf>> {
    let megabytes = match std::env::var("RB_BENCH_MB") {
        Ok(text) => text.parse().with_context(|| format!("`RB_BENCH_MB` is `{text}`"))?,
        Err(_) => MEGABYTES,
    };
    // One long run, cut at many places: no two runs are the same.
    let steps = trace(Mix::Terse, 40 * STEPS);
    let (mut files, mut bytes) = (Vec::new(), 0);
    for number in 0.. {
        let (name, runs, write) = WRITERS[number % WRITERS.len()];
        let path = folder.join(format!("{name}-{number:05}.jsonl"));
        let mut file = BufWriter::new(File::create(&path)?);
        for run in 0..runs {
            let id = number * LINES + run;
            let from = (id * 37) % (steps.len() - STEPS);
            let text = write(&steps[from..from + STEPS], id);
            file.write_all(text.as_bytes())?;
            bytes += u64::try_from(text.len())?;
        }
        file.flush()?;
        files.push(path);
        if bytes >= megabytes * 1_000_000 {
            break;
        }
    }
    Ok(files)
}

fn compare(rb: &Path, files: &[PathBuf]) -> Result<()> {
    let mut bytes = 0;
    for file in files {
        let mut opened =
            File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
        bytes += io::copy(&mut opened, &mut io::sink())?;
    }
    out::say(&format!("{} files, {} MB", files.len(), whole(usize::try_from(bytes / 1_000_000)?)));
    // The first finds a colder machine; neither is always the first.
    let mut fastest = [f64::INFINITY; 2];
    for round in 0..2 {
        for place in [round, 1 - round] {
            let seconds =
                if place == 0 { time("jq", &["-c", "."], files)? } else { check(rb, files)? };
            fastest[place] = fastest[place].min(seconds);
        }
    }
    let rate = |seconds: f64| megabytes(bytes) / seconds;
    out::say(&format!("`jq -c .`   {:>6.1} MB/s", rate(fastest[0])));
    out::say(&format!("`rb check`  {:>6.1} MB/s", rate(fastest[1])));
    out::say(&format!("`rb check` is {:.2} times as fast", fastest[0] / fastest[1]));
    Ok(())
}

fn check(rb: &Path, files: &[PathBuf]) -> Result<f64> {
    time(rb.to_str().context("the path of `rb` is UTF-8")?, &["check"], files)
}

/// Seconds that a program takes for the files.
fn time(program: &str, args: &[&str], files: &[PathBuf]) -> Result<f64> {
    let mut command = shell::program(program)?;
    command.args(args).args(files).stdin(Stdio::null()).stdout(Stdio::null());
    let begun = Instant::now();
    let status = command.status().with_context(|| format!("cannot start `{program}`"))?;
    let seconds = begun.elapsed().as_secs_f64();
    // 1 says that a monitor fired.
    match status.code() {
        Some(0 | 1) => Ok(seconds),
        _ => bail!("`{program}` ended with {status}"),
    }
}

fn megabytes(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes / 1_000).unwrap_or(u32::MAX)) / 1_000.0
}

/// A session of Claude Code: one file.
fn session(steps: &[OwnedStep], id: usize) -> String {
    let session = format!("00000000-0000-4000-8000-{id:012}");
    let mut lines = String::new();
    let mut parent = Value::Null;
    let mut line = |kind: &str, uuid: String, message: Value| {
        let line = json!({"parentUuid": parent, "isSidechain": false, "sessionId": session, "type": kind,
            "message": message, "uuid": uuid, "timestamp": "2026-01-05T09:00:00.000Z"});
        lines.extend([&line.to_string(), "\n"]);
        parent = Value::String(uuid);
    };
    line("user", "u".to_owned(), json!({"role": "user", "content": "Mend the session handler."}));
    for (at, step) in steps.iter().enumerate() {
        let mut content = vec![json!({"type": "text", "text": step.thought})];
        if !step.tool.is_empty() {
            content.push(json!({"type": "tool_use", "id": format!("t{at}"), "name": step.tool, "input": {"text": step.input}}));
        }
        let usage = json!({"input_tokens": 900, "output_tokens": 200});
        let message = json!({"id": format!("m{at}"), "role": "assistant", "model": "claude-x", "content": content, "usage": usage});
        line("assistant", format!("a{at}"), message);
        if !step.tool.is_empty() {
            let result = json!({"type": "tool_result", "tool_use_id": format!("t{at}"), "content": step.observation});
            line("user", format!("r{at}"), json!({"role": "user", "content": [result]}));
        }
    }
    lines
}

/// Bare messages of a chat: one line.
fn messages(steps: &[OwnedStep], id: usize) -> String {
    let mut list =
        vec![json!({"role": "user", "content": format!("Mend the session handler {id}.")})];
    for (at, step) in steps.iter().enumerate() {
        if step.tool.is_empty() {
            list.push(json!({"role": "assistant", "content": step.thought}));
            continue;
        }
        let function =
            json!({"name": step.tool, "arguments": json!({"text": step.input}).to_string()});
        let call = json!({"id": format!("c{at}"), "type": "function", "function": function});
        list.push(json!({"role": "assistant", "content": step.thought, "tool_calls": [call]}));
        list.push(
            json!({"role": "tool", "tool_call_id": format!("c{at}"), "content": step.observation}),
        );
    }
    format!("{}\n", json!({"messages": list}))
}

/// Our own format: one line.
fn own(steps: &[OwnedStep], id: usize) -> String {
    let step = |step: &OwnedStep| json!({"thought": step.thought, "action": step.tool, "action_input": step.input, "observation": step.observation});
    let steps: Vec<Value> = steps.iter().map(step).collect();
    format!(
        "{}\n",
        json!({"run_id": format!("run-{id}"), "task": "Mend the session handler.", "steps": steps})
    )
}
