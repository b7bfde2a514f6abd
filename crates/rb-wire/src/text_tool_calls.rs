//! Tool calls that models write in their text, and results that clients send as user text.
//!
//! Supported are ReAct (`Action:` and `Action Input:`), commands in code fences, and code and call lists of
//! smolagents. A call is only read if a result with a known prefix follows.

use crate::code_fences::all_fenced;

/// A tool call in text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextToolCall {
    /// Text before the call.
    pub(crate) thought: String,
    pub(crate) tool: String,
    pub(crate) input: String,
}

/// Info strings of fences with commands.
pub(crate) const COMMAND_FENCES: [&str; 3] = ["bash", "sh", "mswea_bash_command"];

/// Returns the output of a call and whether it failed; `None` for other text.
pub(crate) fn result(text: &str) -> Option<(&str, bool)> {
    if let Some(rest) = text.strip_prefix("Observation:") {
        return Some((rest.trim(), false));
    }
    let (code, rest) = return_code(text)?;
    let output = rest.trim().trim_start_matches("<output>").trim_end_matches("</output>").trim();
    Some((output, code != "0"))
}

/// Returns the exit code of a command and the rest of the text.
pub(crate) fn return_code(text: &str) -> Option<(&str, &str)> {
    let inside = text.trim_start().strip_prefix("<returncode>")?;
    inside.split_once("</returncode>").map(|(code, rest)| (code.trim(), rest))
}

/// Returns the call in a text of the model.
pub(crate) fn parse(text: &str) -> Option<TextToolCall> {
    // The harness appends the list with a new id each time; the code before it is the model's.
    let (said, listed) = match text.split_once("\nCalling tools:") {
        Some((said, listed)) => (said, Some(listed)),
        None => (text, None),
    };
    react(said).or_else(|| code(said)).or_else(|| commands(said)).or_else(|| {
        let listed = listed?;
        let name = between(listed, "'name': '", "'")?;
        let (_, input) = listed.split_once("'arguments': ")?;
        let input = input.trim_end().trim_end_matches(']').strip_suffix("}}").unwrap_or(input);
        Some(parsed(said, name, input))
    })
}

fn react(text: &str) -> Option<TextToolCall> {
    let (thought, rest) = text.split_once("Action:")?;
    let (tool, input) = rest.split_once("Action Input:").unwrap_or((rest, ""));
    let tool = tool.lines().next().unwrap_or_default().trim();
    let begins_line = thought.is_empty() || thought.ends_with('\n');
    (begins_line && !tool.is_empty()).then(|| parsed(thought, tool, input.trim()))
}

fn code(text: &str) -> Option<TextToolCall> {
    let (thought, rest) = text.split_once("<code>")?;
    let (code, _) = rest.split_once("</code>").unwrap_or((rest, ""));
    Some(parsed(thought, "python", code.trim()))
}

fn commands(text: &str) -> Option<TextToolCall> {
    let found = all_fenced(text).find_map(|found| match found.language {
        language if COMMAND_FENCES.contains(&language) => Some((found, "bash")),
        "python" | "py" => Some((found, "python")),
        _ => None,
    });
    found.map(|(found, tool)| parsed(found.before, tool, found.code))
}

fn parsed(thought: &str, tool: &str, input: &str) -> TextToolCall {
    let thought = thought.trim();
    let bare = ["Thought:", "THOUGHT:"].iter().find_map(|name| thought.strip_prefix(name));
    TextToolCall {
        thought: bare.unwrap_or(thought).trim().to_owned(),
        tool: tool.to_owned(),
        input: input.to_owned(),
    }
}

fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    text.split_once(open)?.1.split_once(close).map(|(inside, _)| inside)
}
