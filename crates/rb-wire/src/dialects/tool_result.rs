//! Text of a tool result, which is a string, a list of blocks, or an object.

use std::borrow::Cow;

use super::user_text::strip_trailing_reminder;
use crate::json::Value;

/// Maximum depth of nested blocks.
const DEPTH_MAX: usize = 3;

/// Returns the text of a result and whether it reports a failure.
pub(super) fn text(value: Option<Value<'_>>) -> (Cow<'_, str>, bool) {
    let Some(value) = value else { return (Cow::Borrowed(""), false) };
    let mut found = Found::default();
    found.look(value, 0);
    let text = match <[Cow<'_, str>; 1]>::try_from(found.texts) {
        Ok([only]) => only,
        Err(several) => Cow::Owned(several.join("\n")),
    };
    let bare = strip_trailing_reminder(&text);
    match wrapped(bare).or_else(|| reported(bare)).or_else(|| listed(bare)) {
        Some((inner, failed)) => (Cow::Owned(inner), failed),
        // The result is only a reminder.
        None if bare.len() < text.len() && !bare.is_empty() => {
            (Cow::Owned(bare.to_owned()), found.failed)
        }
        None => (text, found.failed),
    }
}

#[derive(Default)]
struct Found<'a> {
    texts: Vec<Cow<'a, str>>,
    failed: bool,
}

impl<'a> Found<'a> {
    fn look(&mut self, value: Value<'a>, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        if let Some(text) = value.text() {
            if !text.is_empty() {
                self.texts.push(text);
            }
            return;
        }
        for item in value.items() {
            self.look(item, depth + 1);
        }
        for (key, member) in value.members() {
            match key {
                b"text" | b"title" | b"url" | b"stdout" | b"stderr" | b"logs" | b"error_code"
                | b"message" | b"content" => self.look(member, depth + 1),
                b"type" => self.failed |= member.raw_str().ends_with(b"_error"),
                b"return_code" | b"returncode" | b"exit_code" => {
                    self.failed |= member.number().is_some_and(|code| code != 0);
                }
                b"outcome" => {
                    self.failed |= member.str_bytes("type") == b"timeout";
                    self.failed |=
                        member.get("exit_code").and_then(Value::number).is_some_and(|c| c != 0);
                }
                _ => {}
            }
        }
    }
}

/// Returns the output in the JSON wrapper of Codex, `{"output", "metadata": {"exit_code"}}`,
/// or mini-swe-agent, `{"returncode", "output"}`.
fn wrapped(text: &str) -> Option<(String, bool)> {
    let opening = text.strip_prefix('{')?.trim_start();
    if !["\"output\"", "\"returncode\""].iter().any(|name| opening.starts_with(name)) {
        return None;
    }
    let value = Value::parse(text.as_bytes())?;
    let of_codex = value.get("metadata").and_then(|about| about.get("exit_code"));
    let code = of_codex.or_else(|| value.get("returncode"))?.number()?;
    Some((value.get("output")?.text()?.into_owned(), code != 0))
}

/// Returns the output of a command without the status lines of newer Codex versions. They contain a random id
/// and the duration, so equal outputs would never compare equal.
pub(crate) fn reported(text: &str) -> Option<(String, bool)> {
    let (mut rest, mut ended, mut is_timed) = (text, None, false);
    let output = loop {
        let (line, after) = rest.split_once('\n')?;
        rest = after;
        match line.split_once(':').map_or(line, |(name, _)| name) {
            "Output" => break after,
            "Wall time" => is_timed = true,
            "Chunk ID" | "Original token count" | "Total output lines" => {}
            _ if line.starts_with("Process ") || line.starts_with("Exit code: ") => {
                ended = Some(line);
            }
            _ => return None,
        }
    };
    let ended = ended.filter(|_| is_timed)?;
    let code =
        ended.strip_prefix("Exit code: ").or(ended.strip_prefix("Process exited with code "));
    let failed = code.is_some_and(|code| code.trim() != "0");
    // The exit status replaces an empty output.
    let said = if output.trim().is_empty() { ended } else { output };
    Some((said.to_owned(), failed))
}

/// Returns the output of a command from the field list of Gemini CLI and Qwen Code. It ends with a process id, so equal
/// outputs would never compare equal.
fn listed(text: &str) -> Option<(String, bool)> {
    let (_, rest) = text.strip_prefix("Command: ")?.split_once("\nDirectory: ")?;
    let (_, rest) = rest.split_once("\nOutput: ")?;
    let (output, rest) = rest.rsplit_once("\nError: ")?;
    let (error, rest) = rest.split_once("\nExit Code: ")?;
    let code = rest.lines().next().unwrap_or_default().trim();
    let said = |text: &str| !matches!(text.trim(), "" | "(none)" | "(empty)");
    let texts: Vec<&str> = [output, error].into_iter().filter(|text| said(text)).collect();
    let failed = said(code) && code != "0";
    if texts.is_empty() {
        return Some((format!("Exit Code: {code}"), failed));
    }
    Some((texts.join("\n"), failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_become_one_text() {
        let cases = [
            (r#""plain""#, "plain", false),
            (
                r#"[{"type":"text","text":"a"},{"type":"image","source":{}},{"type":"text","text":"b"}]"#,
                "a\nb",
                false,
            ),
            (
                r#"[{"type":"web_search_result","title":"T","url":"u","encrypted_content":"E"}]"#,
                "T\nu",
                false,
            ),
            (
                r#"{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}"#,
                "max_uses_exceeded",
                true,
            ),
            (
                r#"{"type":"code_execution_result","stdout":"1\n","stderr":"","return_code":0}"#,
                "1\n",
                false,
            ),
            (
                r#"{"type":"code_execution_result","stdout":"","stderr":"bad","return_code":2}"#,
                "bad",
                true,
            ),
            (
                r#"[{"stdout":"o","stderr":"e","outcome":{"type":"exit","exit_code":1}}]"#,
                "o\ne",
                true,
            ),
            (r#"[{"stdout":"o","stderr":"","outcome":{"type":"timeout"}}]"#, "o", true),
            (
                r#""{\"output\":\"no such file\",\"metadata\":{\"exit_code\":1,\"duration_seconds\":0.1}}""#,
                "no such file",
                true,
            ),
            (r#""{\"output\":\"mine\"}""#, r#"{"output":"mine"}"#, false),
            (
                r#""Chunk ID: a3f87c\nWall time: 0.0512 seconds\nProcess exited with code 2\nOriginal token count: 3\nOutput:\nno such file\n""#,
                "no such file\n",
                true,
            ),
            (
                r#""Chunk ID: 48124d\nWall time: 0.0000 seconds\nProcess exited with code 0\nOriginal token count: 0\nOutput:\n""#,
                "Process exited with code 0",
                false,
            ),
            (
                r#""Wall time: 1.0 seconds\nProcess running with session ID 7\nOutput:\nhalf""#,
                "half",
                false,
            ),
            (r#""Exit code: 1\nWall time: 0.1 seconds\nOutput:\nbad""#, "bad", true),
            (r#""Output:\nmine""#, "Output:\nmine", false),
            (r#""Exit code: 1\nmine""#, "Exit code: 1\nmine", false),
            ("null", "", false),
            ("7", "", false),
        ];
        for (json, expected, failed) in cases {
            let value = Value::parse(json.as_bytes());
            assert_eq!(text(value), (Cow::Borrowed(expected), failed), "{json}");
        }
    }

    #[test]
    fn what_harnesses_put_around_an_output_is_no_part_of_it() {
        let cases = [
            (
                r#""Command: make\nDirectory: (root)\nOutput: one\ntwo\nError: (none)\nExit Code: 2\nSignal: (none)\nProcess Group PGID: 4711""#,
                "one\ntwo",
                true,
            ),
            (
                r#""Command: true\nDirectory: (root)\nOutput: (empty)\nError: (none)\nExit Code: 0\nSignal: (none)\nBackground PIDs: (none)\nProcess Group PGID: 4712""#,
                "Exit Code: 0",
                false,
            ),
            (r#""Command: mine""#, "Command: mine", false),
            (
                r#""{\n  \"returncode\": 1,\n  \"output\": \"no such file\", \"exception_info\": \"\"}""#,
                "no such file",
                true,
            ),
            (
                r#""nothing found\n\n<system-reminder>\nbe brief\n</system-reminder>\n""#,
                "nothing found",
                false,
            ),
            (
                r#""<system-reminder>the file is empty</system-reminder>""#,
                "<system-reminder>the file is empty</system-reminder>",
                false,
            ),
        ];
        for (json, expected, failed) in cases {
            let value = Value::parse(json.as_bytes());
            assert_eq!(text(value), (Cow::Borrowed(expected), failed), "{json}");
        }
    }
}
