//! `rb demo`: a scripted agent that loops, once left alone and once steered, without any key.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::Result;
use rb_server::demo::{Beat, MODEL, Stage, TASK, Tally};
use rb_server::gateway::Mode;

use crate::cli::DemoArgs;
use crate::exit::Exit;
use crate::out::{BOLD, DIM, GREEN, Out, YELLOW, grouped, harmless};

/// A person can follow the calls at this pace; a program does not wait.
const PACE: Duration = Duration::from_millis(180);
const TEXT_WIDTH: usize = 92;

/// How long the dashboard of the demonstration can be looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stay {
    /// Nobody is there to look.
    No,
    UntilEnter,
    UntilEnded,
}

pub(crate) fn run(args: &DemoArgs, out: &mut Out) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let is_watched = std::io::stdout().is_terminal();
    let pace = if is_watched { PACE } else { Duration::ZERO };
    let stay = match (args.stay, is_watched && std::io::stdin().is_terminal()) {
        (true, _) => Stay::UntilEnded,
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
         the real one.\nNo key, no network, and nothing is kept.\n\nThe task: {TASK}\n"
    ))?;
    let stage = Stage::build().await?;
    out.result(&format!("\n{BOLD}1. Left alone{BOLD:#} {DIM}(mode `observe`){DIM:#}\n"))?;
    let alone = stage.play(Mode::Observe, |beat| tell(out, beat, pace)).await?;
    out.result(&format!("\n{BOLD}2. Steered{BOLD:#} {DIM}(mode `steer`){DIM:#}\n"))?;
    let steered = stage.play(Mode::Steer, |beat| tell(out, beat, pace)).await?;
    out.result(&side_by_side(&alone, &steered))?;
    out.result(NEXT)?;
    let how = match stay {
        Stay::No => return Ok(()),
        Stay::UntilEnter => "Enter ends the demo.",
        Stay::UntilEnded => "Ctrl-C ends the demo.",
    };
    let dashboard = stage.dashboard();
    out.result(&format!("\nBoth scripted runs are on the dashboard: {dashboard}\n{how}\n"))?;
    out.finish()?;
    match stay {
        Stay::No => {}
        Stay::UntilEnter => drop(tokio::task::spawn_blocking(enter).await),
        Stay::UntilEnded => super::serve::asked_to_stop().await,
    }
    Ok(())
}

/// Waits for a line from the keyboard.
fn enter() -> std::io::Result<usize> {
    std::io::stdin().read_line(&mut String::new())
}

fn tell(out: &mut Out, beat: &Beat, pace: Duration) {
    // A reader that has gone away is noticed at the end.
    drop(out.result(&line(beat)));
    drop(out.finish());
    std::thread::sleep(pace);
}

fn line(beat: &Beat) -> String {
    let mut text = String::new();
    for guidance in &beat.told {
        let _ = writeln!(text, "      {YELLOW}guidance reaches the model:{YELLOW:#}");
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
                harmless(given),
                harmless(result)
            );
        }
        None => {
            let _ = writeln!(
                text,
                "  {:>2}  {GREEN}answer:{GREEN:#} {}",
                beat.call,
                harmless(&beat.thought)
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
        ("guidance came", came(alone), came(steered)),
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
        "\n{DIM}Priced as {MODEL}. The scripted model heeds guidance; a real one is free to decide otherwise.{DIM:#}"
    );
    text
}

fn came(tally: &Tally) -> String {
    tally
        .guidance
        .as_ref()
        .map_or_else(|| "never".to_owned(), |(call, _)| format!("with call {call}"))
}

fn dollars(usd: f64) -> String {
    format!("${usd:.4}")
}

/// Lines of at most so many characters, broken between words.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && line.chars().count() + word.chars().count() >= width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&harmless(word));
        }
        lines.push(line);
    }
    lines
}

const NEXT: &str = "\nNow with your own agent:\n\n    \
rb run -- claude                 # Claude Code, steered for this session\n    \
rb run -- codex                  # Codex, with OPENAI_API_KEY set\n    \
rb run -- python my_agent.py     # anything that heeds ANTHROPIC_BASE_URL or OPENAI_BASE_URL\n    \
RB_MODE=observe rb run -- claude # watches, changes nothing\n\n\
How each agent is set up: docs/agents/\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("one two three\n\nfour", 9), ["one two", "three", "four"]);
        assert_eq!(wrapped("averyverylongword b", 5), ["averyverylongword", "b"]);
    }
}
