//! What stands below the flags in the long help: examples, exit codes, keys.

pub(super) const AFTER_RUN: &str = "\
Set for the command alone:
  ANTHROPIC_BASE_URL, ANTHROPIC_API_BASE, OPENAI_BASE_URL, OPENAI_API_BASE
  For `codex` also its provider entry, by `-c` settings.
  An address that was set before is where the gateway forwards to.

Exit codes:
  that of the command; 128 and the signal's number if a signal ended it
  127  there is no such command
  126  it cannot be started

Examples:
  rb run -- claude
  rb run -- codex exec 'Why does the build fail?'
  RB_MODE=observe rb run -- python my_agent.py

How each agent is set up: docs/agents/";

pub(super) const AFTER_REPORT: &str = "\
Exit codes:
  0  the page was written
  2  an error: nothing to show, or a part that could not be read; the rest was drawn

Examples:
  rb report session.jsonl
  rb report ~/.claude/projects/ -o yesterday.html
  rb report run-42 --data-dir /var/lib/reasonblocks -o run-42.html";

pub(super) const AFTER_IMPORT: &str = "\
A run is known by its name; where others may have the same one, by when or how it begins as well. A run that was watched
live is never changed. Without a time in the source, a run was when it was first imported.

Exit codes:
  0  everything was taken
  2  an error: a path that cannot be read, a bad line, or no run at all; the rest was taken

Examples:
  rb import ~/.claude/projects/
  rb import results/*.jsonl.gz --project nightly
  rb import ~/.claude/projects/ --url http://127.0.0.1:9000
  rb import session.jsonl --data-dir /var/lib/reasonblocks && rb serve";

pub(super) const AFTER_WATCH: &str = "\
Keys:
  up, down, k, j   another run, or another step
  return           the run in full
  escape, left     back to all runs
  f                only runs in which something fired
  q, control-C     the end

Examples:
  rb watch
  rb watch --url http://build-server:9000 --key rb_live_…
  rb watch | grep fired";

pub(super) const AFTER_SERVE: &str = "\
Examples:
  rb serve
  rb serve --data-dir /var/lib/reasonblocks --log-format json
  REASONBLOCKS_KEYS=secret rb serve --listen 0.0.0.0:9000

All settings: docs/server.md";

pub(super) const AFTER_QUALITY: &str = "\
A line of input, here with line breaks (`steps` as in `rb check`; the more of the rest the better):
  {\"run_id\": \"r1\", \"task\": \"Mend the parser.\", \"outcome\": \"success\" or \"failure\",
   \"labels\": {\"labelled_steps\": [{\"step_index\": 3, \"category\": \"loop\"}]}, \"steps\": […]}
  Runs with the same `task` are drawn and held out together. Steps are counted from 0. Labels are
  also read from `labels.errors` (`step_index` and `category`) and from `labels.mistake_step`.

Exit codes:
  0  the report was written
  1  with --check: a target was missed
  2  an error: a path that cannot be read, a bad line, or nothing to measure; the rest was measured

Examples:
  rb quality runs.jsonl
  rb quality transcripts/ --html quality.html
  rb quality transcripts/ --no-plants --json | jq '.sets[] | select(.split == \"held_out\")'
  rb quality nightly.jsonl.gz --check=held-out
  rb quality runs.jsonl --show-plants 2

What the numbers mean: docs/quality.md";

pub(super) const AFTER_CHECK: &str = "\
Formats (docs/transcripts.md says more):
  agent-error-bench, anthropic-messages, atif, claude-code, claude-stream, codex, gemini-cli,
  langfuse, langsmith, mast, message-lines, mini-swe-agent, openai-chat, openai-responses,
  openhands, openhands-eval, openinference, otel-genai, otlp, runs, swe-agent, tau-bench,
  tau2-bench, who-and-when

A line of our own format (`runs`), here with line breaks (only `steps` must be there):
  {\"run_id\": \"r1\", \"outcome\": \"failure\", \"steps\": [
    {\"thought\": \"Let me look.\", \"action\": \"bash\", \"action_input\": \"ls\",
     \"observation\": \"a.rs\", \"is_error\": false}, …]}

A line of output with --json, here with line breaks:
  {\"run_id\": \"r1\", \"outcome\": \"failure\", \"fires\": […], \"steps\": [
    {\"step_index\": 0, \"difficulty\": 0.05, \"fsm_state\": \"NORMAL\",
     \"scores\": {\"streak\": 0.0, …}, \"composite\": 0.0075, \"fired\": []}, …], …}
  `difficulty` is null where a step has no thought.

Exit codes:
  0  nothing fired
  1  a monitor fired
  2  an error: a path that cannot be read, a bad line, or no run at all; the rest was checked

Examples:
  rb check runs.jsonl
  rb check ~/.claude/projects/ --only-fired
  rb check transcripts/ --suite heuristic --profile qa --weight streak=0.1
  zcat runs.jsonl.gz | rb check - --json | jq 'select(.fires != []) | .run_id'";
