//! Reader of messages in Python notation: consecutive dictionaries with Python's quotes and escapes.
//!
//! It supports only the syntax that `{'content': ['…'], 'role': '…', 'name': '…'}` needs: strings and the depth of
//! brackets. Everything else is skipped.

/// Message with the name of its author.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Said {
    pub(super) name: Option<String>,
    pub(super) text: String,
}

/// Reads the messages of a text; empty for other texts.
pub(super) fn messages(text: &str) -> Vec<Said> {
    let mut all = Vec::new();
    if !text.trim_start().starts_with(['{', '[']) {
        return all;
    }
    let mut reader = Reader { text, at: 0 };
    let mut message = Message::default();
    while let Some(byte) = reader.peek() {
        match byte {
            b'{' => message.open(),
            b'}' => all.extend(message.close()),
            b'\'' | b'"' => {
                // An unclosed string ends the input.
                let Some(string) = reader.string() else { break };
                message.string(string, reader.is_key());
                continue;
            }
            _ => {}
        }
        reader.at += 1;
    }
    all
}

/// State of one message during parsing.
#[derive(Default)]
struct Message {
    depth: usize,
    key: String,
    name: Option<String>,
    role: Option<String>,
    content: Vec<String>,
}

impl Message {
    fn open(&mut self) {
        self.depth += 1;
    }

    fn string(&mut self, string: String, is_key: bool) {
        if is_key && self.depth == 1 {
            self.key = string;
            return;
        }
        match self.key.as_str() {
            "content" if self.depth >= 1 && !is_key => self.content.push(string),
            "name" if self.depth == 1 => self.name = Some(string),
            "role" if self.depth == 1 => self.role = Some(string),
            _ => {}
        }
    }

    fn close(&mut self) -> Option<Said> {
        self.depth = self.depth.saturating_sub(1);
        if self.depth > 0 {
            return None;
        }
        let done = std::mem::take(self);
        let said = Said { name: done.name.or(done.role), text: done.content.join("\n") };
        (!said.text.is_empty()).then_some(said)
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Returns `true` if a colon follows.
    fn is_key(&self) -> bool {
        self.text[self.at..].trim_start().starts_with(':')
    }

    /// Reads the string at the current position; `None` if it is unclosed.
    fn string(&mut self) -> Option<String> {
        let mut chars = self.text[self.at..].char_indices();
        let (_, quote) = chars.next()?;
        let mut string = String::new();
        while let Some((at, char)) = chars.next() {
            if char == quote {
                self.at += at + quote.len_utf8();
                return Some(string);
            }
            if char != '\\' {
                string.push(char);
                continue;
            }
            match chars.next()?.1 {
                'n' => string.push('\n'),
                't' => string.push('\t'),
                'r' => string.push('\r'),
                '\n' => {}
                other @ ('\\' | '\'' | '"') => string.push(other),
                other => string.extend(['\\', other]),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_messages_are_taken_apart() {
        let text = r#"{'content': ['It\'s "7".\nYes.', "no"], 'role': 'assistant', 'name': 'solver'}
            {'role': 'user', 'content': 'go on', 'extra': {'name': 'x', 'a': 1}} {'content': 'cut"#;
        let said =
            |name: &str, text: &str| Said { name: Some(name.to_owned()), text: text.to_owned() };
        assert_eq!(
            messages(text),
            [said("solver", "It's \"7\".\nYes.\nno"), said("user", "go on")]
        );
        for text in ["", "plain 'text'", "{", "}", "{'", "{'a'", "{'a': '\\", "[{'content': '}'}"] {
            let _ = messages(text);
        }
    }
}
