//! Loops: six steps that repeat earlier ones with the same result.

use serde_json::Value;

use super::agent_style::{AgentStyle, object};
use super::edits::is_change;
use super::{Fault, paraphrase, place};
use rb_quality::corpus::{LabelledRun, OwnedStep};
use rb_quality::rng::Rng;

/// Number of inserted steps.
const STEPS: usize = 6;

pub(super) fn inject(run: &LabelledRun, style: &AgentStyle, rng: &mut Rng) -> Option<Fault> {
    let start = place(run, rng);
    let (variant, inserted) = match rng.below(4) {
        0 => ("exact", exact(run, start)?),
        1 => ("reworded", reworded(run, start, rng)?),
        2 => ("cycle", cycle(run, start, rng)?),
        _ => match same_error(run, start, style, rng) {
            Some(inserted) => ("same error", inserted),
            None => ("reworded", reworded(run, start, rng)?),
        },
    };
    Some(Fault::inserted(variant, run, start, &inserted))
}

/// The repeated step: the last one with a call and a result, otherwise the last message.
fn source(run: &LabelledRun, start: usize) -> Option<&OwnedStep> {
    let before = run.steps.get(..start)?;
    let acted = |step: &&OwnedStep| {
        !step.tool.is_empty() && !step.observation.trim().is_empty() && !is_change(step)
    };
    let spoke = |step: &&OwnedStep| step.tool.is_empty() && step.thought.len() >= 20;
    before.iter().rev().find(acted).or_else(|| before.iter().rev().find(spoke))
}

fn again(step: &OwnedStep) -> OwnedStep {
    OwnedStep { user_input: String::new(), ..step.clone() }
}

fn exact(run: &LabelledRun, start: usize) -> Option<Vec<OwnedStep>> {
    Some(vec![again(source(run, start)?); STEPS])
}

fn reworded(run: &LabelledRun, start: usize, rng: &mut Rng) -> Option<Vec<OwnedStep>> {
    let source = source(run, start)?;
    Some((0..STEPS).map(|_| paraphrase::step(source, rng)).collect())
}

/// Repeats the last two or three steps.
fn cycle(run: &LabelledRun, start: usize, rng: &mut Rng) -> Option<Vec<OwnedStep>> {
    let period = 2 + rng.below(2);
    let steps = run.steps.get(start.checked_sub(period)?..start)?;
    Some(steps.iter().cycle().take(STEPS).map(again).collect())
}

/// Commands that fail with the same error.
struct Failing {
    error: &'static str,
    commands: [&'static str; 6],
}

const FAILING: [Failing; 8] = [
    Failing {
        error: "ModuleNotFoundError: No module named 'yamlkit'",
        commands: [
            "python -c 'import yamlkit'",
            "python3 -m yamlkit --version",
            "pip show yamlkit; python -c 'from yamlkit import load'",
            "PYTHONPATH=. python -c 'import yamlkit'",
            "python -c 'import sys; sys.path.insert(0, \"src\"); import yamlkit'",
            "python -m pytest --collect-only -q",
        ],
    },
    Failing {
        error: "bash: line 1: shellfmt: command not found",
        commands: [
            "shellfmt -l .",
            "shellfmt --help",
            "shellfmt scripts/run.sh",
            "/usr/bin/env shellfmt -d .",
            "shellfmt -w scripts",
            "cat scripts/run.sh | shellfmt",
        ],
    },
    Failing {
        error: "fatal: could not read from remote repository: connection timed out",
        commands: [
            "git fetch origin",
            "git pull --rebase",
            "git fetch --depth 1 origin main",
            "git ls-remote origin",
            "git remote update",
            "GIT_SSH_COMMAND='ssh -v' git fetch",
        ],
    },
    Failing {
        error: "curl: (7) Failed to connect to localhost port 8080: Connection refused",
        commands: [
            "curl -s localhost:8080/health",
            "curl http://127.0.0.1:8080/",
            "curl -v http://localhost:8080/status",
            "curl --retry 2 http://localhost:8080/api",
            "curl -sS -X GET http://localhost:8080/ping",
            "curl -I http://localhost:8080",
        ],
    },
    Failing {
        error: "PermissionError: [Errno 13] Permission denied: '/var/lib/cache/index.db'",
        commands: [
            "python tools/reindex.py",
            "python tools/reindex.py --force",
            "python tools/reindex.py --path /var/lib/cache",
            "python -m tools.reindex",
            "python tools/reindex.py --quiet --workers 1",
            "python3 tools/reindex.py --no-lock",
        ],
    },
    Failing {
        error: "make: *** No rule to make target 'build/core.o', needed by 'all'.  Stop.",
        commands: [
            "make",
            "make all",
            "make -j4",
            "make clean && make",
            "make -B all",
            "make -C . all VERBOSE=1",
        ],
    },
    Failing {
        error: "sqlite3.OperationalError: no such table: accounts",
        commands: [
            "python -c \"import db; print(db.count('accounts'))\"",
            "sqlite3 app.db 'select count(*) from accounts'",
            "sqlite3 ./app.db 'select * from accounts limit 1'",
            "python manage.py dumpdata accounts",
            "sqlite3 app.db 'select id from accounts order by id limit 5'",
            "python -c \"import db; db.first('accounts')\"",
        ],
    },
    Failing {
        error: "npm ERR! code ERESOLVE\nnpm ERR! could not resolve dependency: peer react@\"^17\"",
        commands: [
            "npm install",
            "npm ci",
            "npm install --save-dev",
            "npm install --no-audit",
            "npm i --prefer-offline",
            "npm install --loglevel error",
        ],
    },
];

const CALL_ERRORS: [&str; 8] = [
    "Error: request failed with status 403 (forbidden)",
    "Error: invalid argument: value not accepted by the service",
    "Error: upstream timed out after 30 s",
    "Error: record is locked by another session",
    "Error: rate limit exceeded, try again later",
    "Error: unknown field in request",
    "No results found.",
    "Error: 500 internal server error",
];

const RETRIES: [&str; 12] = [
    "That did not work. Let me try it another way.",
    "Maybe a different argument helps.",
    "I will try once more with other options.",
    "Same outcome as before; another variant might do it.",
    "Let me see whether a small change gets past this.",
    "Perhaps the arguments were wrong. Trying again.",
    "I'll attempt this again slightly differently.",
    "Still blocked. One more variation.",
    "Let me adjust the call.",
    "It should work with these options.",
    "Another attempt with a modified call.",
    "I need this to succeed before going on, so again.",
];

/// Calls with different arguments and the same error.
fn same_error(
    run: &LabelledRun,
    start: usize,
    style: &AgentStyle,
    rng: &mut Rng,
) -> Option<Vec<OwnedStep>> {
    let called = |step: &&OwnedStep| !step.input.is_empty() && !step.tool.is_empty();
    let source = run.steps.get(..start)?.iter().rev().find(called);
    let varies = |step: &OwnedStep| object(&step.input).is_some() || !step.input.contains('\n');
    if style.edits_files() || (style.runs_commands() && !source.is_some_and(varies)) {
        let failing = FAILING.get(rng.below(FAILING.len()))?;
        let step = |command: &&str| {
            let mut step = style.command(command, failing.error, true)?;
            step.thought = style.thought(rng.pick(&RETRIES));
            Some(step)
        };
        return failing.commands.iter().map(step).collect();
    }
    let source = source?;
    let error = rng.pick(&CALL_ERRORS);
    let step = |nth| OwnedStep {
        thought: if source.thought.is_empty() {
            String::new()
        } else {
            style.thought(rng.pick(&RETRIES))
        },
        input: varied(&source.input, nth),
        observation: error.to_owned(),
        user_input: String::new(),
        ..source.clone()
    };
    Some((1..=STEPS).map(step).collect())
}

/// The same call with one value changed.
fn varied(input: &str, nth: usize) -> String {
    let Some(mut fields) = object(input) else {
        let fillers = ["", " list", " (all)", " name", " latest", " full", " page"];
        return format!("{input}{}", fillers.get(nth).copied().unwrap_or_default());
    };
    if let Some(value) = fields.values_mut().find(|value| value.is_string() || value.is_number()) {
        let other = match value.as_str() {
            Some(text) => Value::from(format!("{text}-{nth}")),
            None => Value::from(nth),
        };
        *value = other;
    }
    Value::Object(fields).to_string()
}
