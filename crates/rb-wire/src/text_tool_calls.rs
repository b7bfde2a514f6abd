//! Calls that agents without tool calls write into their text, and the answers that come back as words of the user.
//!
//! Known are ReAct (`Action:` and `Action Input:`), commands between fences, the code of smolagents, and the list of calls
//! that it writes behind. An answer is known by how it begins; without one, a text is a text.

use crate::code_fences::all_fenced;

/// A call in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextToolCall {
    /// What stands before it.
    pub(crate) thought: String,
    pub(crate) tool: String,
    pub(crate) input: String,
}

/// What stands behind the fence of a command; other fences only quote.
pub(crate) const COMMAND_FENCES: [&str; 3] = ["bash", "sh", "mswea_bash_command"];

/// What came back from a call, and whether it says that the call failed; `None` for the words of a person.
pub(crate) fn result(text: &str) -> Option<(&str, bool)> {
    if let Some(rest) = text.strip_prefix("Observation:") {
        return Some((rest.trim(), false));
    }
    let (code, rest) = return_code(text)?;
    let output = rest.trim().trim_start_matches("<output>").trim_end_matches("</output>").trim();
    Some((output, code != "0"))
}

/// The code that a command ended with, and what follows it.
pub(crate) fn return_code(text: &str) -> Option<(&str, &str)> {
    let inside = text.trim_start().strip_prefix("<returncode>")?;
    inside.split_once("</returncode>").map(|(code, rest)| (code.trim(), rest))
}

/// The call in what the model said.
pub(crate) fn parse(text: &str) -> Option<TextToolCall> {
    // The list is written by the harness, with an id that is new each time; the code before it is the model's own.
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
