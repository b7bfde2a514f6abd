//! Splits a command line: pipes, lists, quotes, substitutions, redirections, here-documents.
//!
//! This is not a shell. It finds the boundaries of commands and their words, tolerates syntax errors, and reads the
//! text once. The text inside `$( )` is returned to be split in turn.

use std::borrow::Cow;

/// Maximum number of commands.
const COMMANDS_MAX: usize = 48;
/// Maximum number of words of a command.
const WORDS_MAX: usize = 48;
/// Bytes in which the end of a condition is searched.
const WINDOW_BYTES: usize = 300;

/// One command: a program and its words.
#[derive(Debug, Default)]
pub(super) struct Simple<'a> {
    pub(super) words: Vec<Cow<'a, str>>,
    /// Files that receive the output, excluding those that receive only its errors.
    pub(super) outputs: Vec<Cow<'a, str>>,
    /// The input file.
    pub(super) input: Option<Cow<'a, str>>,
    /// The here-document that is the input.
    pub(super) heredoc: Option<&'a str>,
    /// The input is the output of the previous command.
    pub(super) piped: bool,
}

/// The parts of a command line.
#[derive(Debug, Default)]
pub(super) struct Script<'a> {
    pub(super) commands: Vec<Simple<'a>>,
    /// Content of `$( )`, backticks and `<( )`.
    pub(super) inner: Vec<&'a str>,
}

/// Splits `text`.
pub(super) fn split(text: &str) -> Script<'_> {
    let mut lexer = Lexer {
        text,
        at: 0,
        script: Script::default(),
        current: Simple::default(),
        waiting: Vec::new(),
        open: 0,
    };
    lexer.run();
    lexer.script
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    script: Script<'a>,
    current: Simple<'a>,
    /// Here-documents announced on this line: their delimiter, and the index of their command.
    waiting: Vec<(Cow<'a, str>, usize)>,
    /// Number of open subshells.
    open: usize,
}

impl<'a> Lexer<'a> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or("")
    }

    fn run(&mut self) {
        while self.script.commands.len() < COMMANDS_MAX {
            let Some(byte) = self.peek(0) else { break };
            match byte {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\\' if self.peek(1) == Some(b'\n') => self.at += 2,
                b'\n' => {
                    self.at += 1;
                    self.end_command(false);
                    self.read_heredocs();
                }
                b'#' => self.skip_line(),
                b';' => {
                    self.at += 1;
                    self.end_command(false);
                }
                b'&' if self.peek(1) == Some(b'>') => {
                    self.at += 1;
                    self.redirect(true);
                }
                b'&' | b'|' => self.operator(byte),
                b'(' if self.peek(1) == Some(b'(') && self.opens_command() => self.skip_past("))"),
                b'(' if self.assigns_list() => self.skip_past(")"),
                b'(' => {
                    self.at += 1;
                    if self.peek(0) == Some(b')') && self.current.words.len() == 1 {
                        self.at += 1; // `name()` defines a function.
                        self.current = Simple::default();
                    } else {
                        self.open += 1;
                        self.end_command(false);
                    }
                }
                b')' => self.close_paren(),
                b'<' | b'>' if self.peek(1) != Some(b'(') => self.redirect(true),
                _ => self.word(),
            }
        }
        self.end_command(false);
    }

    fn operator(&mut self, byte: u8) {
        let doubled = self.peek(1) == Some(byte);
        let pipe = byte == b'|' && !doubled;
        self.at += if doubled || self.peek(1) == Some(b'&') { 2 } else { 1 };
        self.end_command(pipe);
    }

    /// Ends a subshell, or the pattern of a `case`.
    fn close_paren(&mut self) {
        self.at += 1;
        if self.open == 0 && self.current.words.len() == 1 {
            let piped = self.current.piped;
            self.current = Simple::default();
            if piped {
                self.script.commands.pop();
            }
            return;
        }
        self.open = self.open.saturating_sub(1);
        self.end_command(false);
    }

    fn end_command(&mut self, feeds_next: bool) {
        let done = std::mem::take(&mut self.current);
        self.current.piped = feeds_next;
        let empty = done.words.is_empty() && done.outputs.is_empty() && done.heredoc.is_none();
        let announces = self.waiting.iter().any(|(_, owner)| *owner == self.script.commands.len());
        if !empty || announces {
            self.script.commands.push(done);
        }
    }

    fn skip_line(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or(&[]);
        self.at += rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
    }

    fn word(&mut self) {
        let start = self.at;
        let word = self.read_word();
        // The digits of `2>` and `1>` belong to the redirection.
        if matches!(self.peek(0), Some(b'<' | b'>'))
            && self.at - start == 1
            && word.bytes().all(|b| b.is_ascii_digit())
        {
            self.redirect(word != "2");
            return;
        }
        // `[[ … ]]` uses a different syntax.
        if word == "[[" {
            self.skip_past(" ]]");
        }
        if self.current.words.len() < WORDS_MAX {
            self.current.words.push(word);
        }
    }

    /// Reports whether a command starts here: at most a keyword precedes.
    fn opens_command(&self) -> bool {
        let keywords = ["if", "elif", "while", "until", "!", "then", "do", "else", "for"];
        self.current.words.last().is_none_or(|word| keywords.contains(&word.as_ref()))
    }

    /// Reports whether `(` follows `name=` and opens a list of words.
    fn assigns_list(&self) -> bool {
        self.at > 0
            && self.text.as_bytes().get(self.at - 1) == Some(&b'=')
            && self.current.words.last().is_some_and(|word| word.ends_with('='))
    }

    /// Skips past the next `end`; without one, past the opening character.
    fn skip_past(&mut self, end: &str) {
        let window = self.text.floor_char_boundary(self.at + WINDOW_BYTES);
        match self.slice(self.at, window).find(end) {
            Some(at) => self.at += at + end.len(),
            None => self.at += 1,
        }
    }

    fn redirect(&mut self, is_output: bool) {
        let input = self.peek(0) == Some(b'<');
        let mut run = 0;
        while matches!(self.peek(0), Some(b'<' | b'>' | b'|')) && run < 3 {
            self.at += 1;
            run += 1;
        }
        let heredoc = input && run == 2;
        if heredoc && self.peek(0) == Some(b'-') {
            self.at += 1;
        }
        let duplicates = self.peek(0) == Some(b'&');
        if duplicates {
            self.at += 1;
        }
        while matches!(self.peek(0), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        if matches!(self.peek(0), None | Some(b'\n' | b';' | b'|')) {
            return;
        }
        let target = self.read_word();
        if heredoc {
            self.waiting.push((target, self.script.commands.len()));
        } else if input {
            if run == 1 {
                self.current.input = Some(target);
            }
        } else if is_output && !duplicates {
            self.current.outputs.push(target);
        }
    }

    /// Reads the here-documents announced on the previous line.
    fn read_heredocs(&mut self) {
        for (mark, owner) in std::mem::take(&mut self.waiting) {
            let start = self.at;
            let mut end = self.text.len();
            while self.at < self.text.len() {
                let line_start = self.at;
                self.skip_line();
                let line = self.slice(line_start, self.at);
                self.at = (self.at + 1).min(self.text.len());
                if line.trim() == mark {
                    end = line_start;
                    break;
                }
            }
            let body = self.slice(start, end);
            if let Some(command) = self.script.commands.get_mut(owner) {
                command.heredoc = Some(body);
            }
        }
    }

    /// Reads one word and removes its quotes; borrowed if there are none.
    fn read_word(&mut self) -> Cow<'a, str> {
        if let Some(whole) = self.wholly_quoted() {
            return whole.into();
        }
        let start = self.at;
        let mut word = Cow::Borrowed("");
        let mut from = start;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'<' | b'>' if self.peek(1) == Some(b'(') && self.at == start => {
                    self.at += 1;
                    self.substitution();
                }
                b'(' if self.at == start => self.at += 1,
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'|' | b'&' | b')' | b'<' | b'>' | b'(' => {
                    break;
                }
                b'$' if self.peek(1) == Some(b'(') => {
                    self.at += 1;
                    self.substitution();
                }
                b'$' if self.peek(1) == Some(b'{') => self.skip_to(b'}'),
                b'`' => self.backticks(),
                b'\\' | b'\'' | b'"' => {
                    word += self.slice(from, self.at);
                    self.unquote(byte, word.to_mut());
                    from = self.at;
                }
                _ => self.at += 1,
            }
        }
        if self.at == start {
            self.at += 1; // Not part of a word: skip it, or the lexer would not advance.
            while !self.text.is_char_boundary(self.at) {
                self.at += 1;
            }
        }
        word += self.slice(from, self.at);
        word
    }

    /// Returns the content of a word that is quoted as a whole, without a copy.
    fn wholly_quoted(&mut self) -> Option<&'a str> {
        if self.peek(0) != Some(b'\'') {
            return None;
        }
        let rest = self.text.as_bytes().get(self.at + 1..)?;
        let len = rest.iter().position(|&b| b == b'\'')?;
        let next = rest.get(len + 1);
        if next.is_some_and(|b| !matches!(b, b' ' | b'\t' | b'\n' | b';' | b'|' | b'&' | b')')) {
            return None;
        }
        let start = self.at + 1;
        self.at = start + len + 1;
        Some(self.slice(start, start + len))
    }

    fn unquote(&mut self, quote: u8, out: &mut String) {
        self.at += 1;
        match quote {
            b'\'' => {
                let start = self.at;
                let rest = self.text.as_bytes().get(start..).unwrap_or(&[]);
                let len = rest.iter().position(|&b| b == b'\'').unwrap_or(rest.len());
                out.push_str(self.slice(start, start + len));
                self.at = (start + len + 1).min(self.text.len());
            }
            b'"' => self.double_quoted(out),
            _ => {
                // A backslash escapes the next character and removes a line break.
                let Some(c) = self.slice(self.at, self.text.len()).chars().next() else { return };
                if c != '\n' {
                    out.push(c);
                }
                self.at += c.len_utf8();
            }
        }
    }

    fn double_quoted(&mut self, out: &mut String) {
        let mut from = self.at;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'"' => {
                    out.push_str(self.slice(from, self.at));
                    self.at += 1;
                    return;
                }
                b'\\' if matches!(self.peek(1), Some(b'"' | b'\\' | b'$' | b'`' | b'\n')) => {
                    out.push_str(self.slice(from, self.at));
                    from = self.at + 1;
                    self.at += 2;
                }
                b'$' if self.peek(1) == Some(b'(') => {
                    self.at += 1;
                    self.substitution();
                }
                b'`' => self.backticks(),
                _ => self.at += 1,
            }
        }
        out.push_str(self.slice(from, self.text.len()));
    }

    /// Skips `( … )` and stores its content, unless it is arithmetic.
    fn substitution(&mut self) {
        let arithmetic = self.peek(1) == Some(b'(');
        let start = self.at + 1;
        let mut open = 0_usize;
        let mut quote = 0_u8;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\\' if quote != b'\'' => self.at += 1,
                b'\'' | b'"' if quote == 0 => quote = byte,
                b'\'' | b'"' if quote == byte => quote = 0,
                b'(' if quote == 0 => open += 1,
                b')' if quote == 0 => {
                    open -= 1;
                    if open == 0 {
                        break;
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
        self.at = self.at.min(self.text.len());
        self.keep_inner(start, self.at, arithmetic);
        self.at = (self.at + 1).min(self.text.len());
    }

    fn backticks(&mut self) {
        let start = self.at + 1;
        self.skip_to(b'`');
        self.keep_inner(start, self.at.saturating_sub(1).max(start), false);
    }

    fn keep_inner(&mut self, start: usize, end: usize, arithmetic: bool) {
        if !arithmetic && self.script.inner.len() < COMMANDS_MAX {
            self.script.inner.push(self.slice(start, end));
        }
    }

    /// Skips past the next `end`, or to the end of the text.
    fn skip_to(&mut self, end: u8) {
        let rest = self.text.as_bytes().get(self.at + 1..).unwrap_or(&[]);
        let len = rest.iter().position(|&b| b == end).map_or(rest.len(), |n| n + 1);
        self.at = (self.at + 1 + len).min(self.text.len());
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn show(text: &str) -> String {
        let script = split(text);
        let mut shown = Vec::new();
        for command in &script.commands {
            let mut line = String::new();
            if command.piped {
                line.push_str("| ");
            }
            line.push_str(&command.words.join(" · "));
            for output in &command.outputs {
                let _ = write!(line, " >{output}");
            }
            if let Some(input) = &command.input {
                let _ = write!(line, " <{input}");
            }
            if let Some(body) = command.heredoc {
                let _ = write!(line, " <<{body:?}");
            }
            shown.push(line);
        }
        shown.extend(script.inner.iter().map(|inner| format!("$({inner})")));
        shown.join(" ; ")
    }

    #[test]
    fn command_lines_are_split() {
        for (text, want) in [
            ("ls -la", "ls · -la"),
            ("cd a && ls || pwd; id", "cd · a ; ls ; pwd ; id"),
            ("a | b |& c & d", "a ; | b ; | c ; d"),
            ("grep 'a b' \"c $x\" d\\ e", "grep · a b · c $x · d e"),
            ("echo a'b'\"c\"", "echo · abc"),
            ("a > f 2>&1", "a >f"),
            ("a 2>/dev/null >> g", "a >g"),
            ("a &> f", "a >f"),
            ("a < f", "a <f"),
            ("cat > f << 'EOF'\nx | y\nEOF\nls", "cat >f <<\"x | y\\n\" ; ls"),
            ("cat <<-EOF > f && ls\n\tx\n\tEOF\nid", "cat >f <<\"\\tx\\n\" ; ls ; id"),
            ("python - <<EOF\nprint(1)", "python · - <<\"print(1)\""),
            ("cat <<A; cat <<B\n1\nA\n2\nB\n", "cat <<\"1\\n\" ; cat <<\"2\\n\""),
            ("echo $(git log | head)", "echo · $(git log | head) ; $(git log | head)"),
            ("echo \"`date` x\"", "echo · `date` x ; $(date)"),
            ("x=$((1+2))", "x=$((1+2))"),
            ("(cd a; ls)", "cd · a ; ls"),
            ("# note\nls # more", "ls"),
            ("ls \\\n -l", "ls · -l"),
            ("f() { ls; }", "{ · ls ; }"),
            ("case $x in\n a|b) ls;;\nesac", "case · $x · in ; ls ; esac"),
            ("diff <(a) <(b)", "diff · <(a) · <(b) ; $(a) ; $(b)"),
            ("if [[ $a =~ ^(x|y)$ ]]; then ls; fi", "if · [[ ; then · ls ; fi"),
            ("((i++)); ls", "ls"),
            ("if (( i % 3 == 0 )); then ls; fi", "if ; then · ls ; fi"),
            ("[[ $x =~ ^[[:space:]](a)$ ]] && ls", "[[ ; ls"),
            ("a=(1 2 3); ls", "a= ; ls"),
            ("grep -E 'a|b' f", "grep · -E · a|b · f"),
            ("wc <<< \"$x\"", "wc"),
            ("echo 'open", "echo · open"),
            ("awk '{print $1}' f", "awk · {print $1} · f"),
            (
                "find . -name '*.py' -exec wc -l {} \\;",
                "find · . · -name · *.py · -exec · wc · -l · {} · ;",
            ),
        ] {
            assert_eq!(show(text), want, "{text:?}");
        }
    }
}
