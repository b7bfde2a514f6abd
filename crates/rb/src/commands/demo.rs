//! `rb demo`: a scripted agent that loops, first left alone, then steered. Needs no API key.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use rb_gateway::Mode;
use rb_server::demo::{Beat, MODEL, Stage, TASK, Tally};

use crate::exit::Exit;
use crate::ui::{BOLD, DIM, GREEN, Out, YELLOW, escape_control, grouped, wrapped};

/// Delay between calls on a terminal.
const CALL_DELAY: Duration = Duration::from_millis(180);
const TEXT_WIDTH: usize = 92;

/// Shows how a looping agent is steered, in ten seconds and without an API key.
///
/// The agent and the model are scripted; the gateway between them is the real one. Everything runs on this machine and
/// in memory, and nothing is stored. On a terminal, the dashboard with both runs stays open until Enter is pressed.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Keep the dashboard with both runs open until Ctrl-C.
    #[arg(long)]
    stay: bool,
}

/// Lifetime of the dashboard after the demonstration.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stay {
    No,
    UntilEnter,
    UntilSignal,
}

pub(crate) fn run(args: &DemoArgs, out: &mut Out) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let is_terminal = std::io::stdout().is_terminal();
    let pace = if is_terminal { CALL_DELAY } else { Duration::ZERO };
    let stay = match (args.stay, is_terminal && std::io::stdin().is_terminal()) {
        (true, _) => Stay::UntilSignal,
        (false, true) => Stay::UntilEnter,
        (false, false) => Stay::No,
    };
    runtime.block_on(show(out, pace, stay))?;
    out.finish()?;
    Ok(Exit::Quiet)
}

async fn show(out: &mut Out, pace: Duration, stay: Stay) -> Result<()> {
    out.result(&format!(
        "{BOLD}ReasonBlocks demo{BOLD:#}: the agent and the model are scripts on this machine; the gateway between them is \
         the real one.\nNo API key, no network, and nothing is stored.\n\nTask: {TASK}\n"
    ))?;
    let stage = Stage::build().await?;
    out.result(&format!("\n{BOLD}1. Left alone{BOLD:#} {DIM}(mode `observe`){DIM:#}\n"))?;
    let alone = stage.play(Mode::Observe, |beat| print(out, beat, pace)).await?;
    out.result(&format!("\n{BOLD}2. Steered{BOLD:#} {DIM}(mode `steer`){DIM:#}\n"))?;
    let steered = stage.play(Mode::Steer, |beat| print(out, beat, pace)).await?;
    out.result(&side_by_side(&alone, &steered))?;
    out.result(NEXT)?;
    let exit_hint = match stay {
        Stay::No => return Ok(()),
        Stay::UntilEnter => "Press Enter to end the demo.",
        Stay::UntilSignal => "Press Ctrl-C to end the demo.",
    };
    let dashboard = stage.dashboard();
    out.result(&format!("\nBoth scripted runs are on the dashboard: {dashboard}\n{exit_hint}\n"))?;
    out.finish()?;
    match stay {
        Stay::No => {}
        Stay::UntilEnter => drop(tokio::task::spawn_blocking(read_line).await),
        Stay::UntilSignal => super::serve::stop_signal().await,
    }
    Ok(())
}

fn read_line() -> std::io::Result<usize> {
    std::io::stdin().read_line(&mut String::new())
}

fn print(out: &mut Out, beat: &Beat, pace: Duration) {
    // A broken pipe is reported by the final flush.
    drop(out.result(&line(beat)));
    drop(out.finish());
    std::thread::sleep(pace);
}

fn line(beat: &Beat) -> String {
    let mut text = String::new();
    for guidance in &beat.told {
        let _ = writeln!(text, "      {YELLOW}guidance for the model:{YELLOW:#}");
        for line in wrapped(guidance, TEXT_WIDTH) {
            let _ = writeln!(text, "      {YELLOW}|{YELLOW:#} {line}");
        }
    }
    match &beat.tool {
        Some((tool, given, result)) => {
            let result = result.lines().last().unwrap_or_default();
            let _ = writeln!(
                text,
                "  {:>2}  {tool}({})  {DIM}-> {}{DIM:#}",
                beat.call,
                escape_control(given),
                escape_control(result)
            );
        }
        None => {
            let _ = writeln!(
                text,
                "  {:>2}  {GREEN}answer:{GREEN:#} {}",
                beat.call,
                escape_control(&beat.thought)
            );
        }
    }
    text
}

fn side_by_side(alone: &Tally, steered: &Tally) -> String {
    let rows = [
        ("calls to the model", grouped(alone.calls.into()), grouped(steered.calls.into())),
        ("tokens (4 bytes each)", grouped(alone.tokens), grouped(steered.tokens)),
        ("cost at list price", dollars(alone.cost_usd), dollars(steered.cost_usd)),
        ("guidance", guidance(alone), guidance(steered)),
        ("fired", alone.fired.join(", "), steered.fired.join(", ")),
    ];
    let wide = |pick: fn(&(&str, String, String)) -> usize| {
        rows.iter().map(pick).max().unwrap_or_default()
    };
    let (first, second) =
        (wide(|row| row.0.len()), wide(|row| row.1.len()).max("left alone".len()));
    let mut text = format!("\n{BOLD}  {:first$}  {:second$}  steered{BOLD:#}\n", "", "left alone");
    for (name, left, right) in &rows {
        let _ = writeln!(text, "  {name:first$}  {left:second$}  {right}");
    }
    let _ = writeln!(
        text,
        "\n{DIM}Priced as {MODEL}. The scripted model follows the guidance; a real model may not.{DIM:#}"
    );
    text
}

fn guidance(tally: &Tally) -> String {
    tally
        .guidance
        .as_ref()
        .map_or_else(|| "none".to_owned(), |(call, _)| format!("with call {call}"))
}

fn dollars(usd: f64) -> String {
    format!("${usd:.4}")
}

const NEXT: &str = "\nNow with your own agent:\n\n    \
rb run -- claude                 # Claude Code, steered for this session\n    \
rb run -- codex                  # Codex, with OPENAI_API_KEY set\n    \
rb run -- python my_agent.py     # anything that reads ANTHROPIC_BASE_URL or OPENAI_BASE_URL\n    \
RB_MODE=observe rb run -- claude # observe only, change nothing\n\n\
Setup per agent: docs/agents/\n";
