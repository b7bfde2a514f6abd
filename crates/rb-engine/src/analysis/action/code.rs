//! Finds the effects of a piece of code from its calls: opened files, started commands, called tools.
//!
//! Written for Python, which agents run most; a few names of other languages are included. Only calls outside strings
//! and comments count, and only their literal arguments are known.

use super::Kind;
use super::command;
use super::effects::Effects;
use super::tools;

/// Maximum number of calls.
const CALLS_MAX: usize = 200;
/// Maximum number of variables.
const LITERALS_MAX: usize = 32;
/// Bytes after the name of a call that are searched for arguments.
const WINDOW_BYTES: usize = 1_000;

/// Variables whose literal value is a query.
const QUERY_NAMES: [&str; 6] = ["query", "search_query", "q", "task", "request", "url"];

/// Adds the effects of the code to `effects`.
pub(super) fn walk(text: &str, effects: &mut Effects, depth: usize) {
    let mut scan = Scan::new(text, effects, depth);
    scan.run();
    let has_effect = scan.has_effect;
    if !has_effect {
        effects.run_program();
    }
}

struct Scan<'t, 'p> {
    text: &'t str,
    at: usize,
    effects: &'p mut Effects,
    depth: usize,
    /// The last `Path("…")`, to which a later `.write_text` applies.
    path: Option<&'t str>,
    /// The last literal assigned to one of [`QUERY_NAMES`].
    query: Option<&'t str>,
    /// Set if the code does more than compute.
    has_effect: bool,
    /// Functions that the code defines.
    defined: Vec<&'t str>,
    /// Variables with a literal value.
    literals: Vec<(&'t str, &'t str)>,
}

impl<'t, 'p> Scan<'t, 'p> {
    fn new(text: &'t str, effects: &'p mut Effects, depth: usize) -> Self {
        Self {
            text,
            at: 0,
            effects,
            depth,
            path: None,
            query: None,
            has_effect: false,
            defined: Vec::new(),
            literals: Vec::new(),
        }
    }

    fn run(&mut self) {
        let mut calls = 0;
        while let Some(&byte) = self.text.as_bytes().get(self.at) {
            match byte {
                b'#' => self.skip_line(),
                b'"' | b'\'' => {
                    self.string();
                }
                _ if byte.is_ascii_alphabetic() || byte == b'_' => {
                    let name = self.name();
                    if name == "def" {
                        self.definition();
                        continue;
                    }
                    if self.text.as_bytes().get(self.at) == Some(&b'(') && calls < CALLS_MAX {
                        calls += 1;
                        self.call(name);
                    } else {
                        self.assignment(name);
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    /// Records a function definition, so that its calls are not mistaken for tool calls.
    fn definition(&mut self) {
        while self.text.as_bytes().get(self.at) == Some(&b' ') {
            self.at += 1;
        }
        let name = self.name();
        if self.defined.len() < CALLS_MAX {
            self.defined.push(name);
        }
    }

    fn skip_line(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or(&[]);
        self.at += rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
    }

    /// Reads a dotted name.
    fn name(&mut self) -> &'t str {
        let start = self.at;
        let rest = self.text.as_bytes().get(start..).unwrap_or(&[]);
        let is_part = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'.' || b >= 0x80;
        let len = rest.iter().position(|&b| !is_part(b)).unwrap_or(rest.len());
        self.at += len;
        self.text.get(start..self.at).unwrap_or("")
    }

    /// Reads the string at the current position and returns its content with escapes unchanged.
    fn string(&mut self) -> &'t str {
        let bytes = self.text.as_bytes();
        let Some(&quote) = bytes.get(self.at) else { return "" };
        let rest = bytes.get(self.at..).unwrap_or(&[]);
        let triple = rest.get(1) == Some(&quote) && rest.get(2) == Some(&quote);
        let width = if triple { 3 } else { 1 };
        let start = self.at + width;
        let mut at = start;
        while let Some(&byte) = bytes.get(at) {
            if byte == b'\\' {
                at += 1;
            } else if triple {
                if byte == quote
                    && bytes.get(at + 1) == Some(&quote)
                    && bytes.get(at + 2) == Some(&quote)
                {
                    break;
                }
            } else if byte == quote || byte == b'\n' {
                break;
            }
            at += 1;
        }
        let end = at.min(bytes.len());
        self.at = (end + width).min(bytes.len());
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
        self.text.get(start..end).unwrap_or("")
    }

    /// Records `name = "…"`.
    fn assignment(&mut self, name: &'t str) {
        let rest = self.text.get(self.at..).unwrap_or("");
        let after = rest.trim_start_matches(' ');
        let Some(value) = after.strip_prefix('=').map(|v| v.trim_start_matches([' ', '('])) else {
            return;
        };
        let value = value.strip_prefix(['f', 'r']).unwrap_or(value);
        if value.starts_with(['"', '\'']) {
            self.at += rest.len() - value.len();
            let text = self.string();
            if QUERY_NAMES.contains(&name) {
                self.query = Some(text);
            }
            if self.literals.len() < LITERALS_MAX {
                self.literals.push((name, text));
            }
        }
    }

    /// Returns the first two arguments of the call at the current position if they are literals or variables with a
    /// literal value.
    fn literals(&self) -> [Option<&'t str>; 2] {
        // The limit keeps many calls before one long string linear.
        let text = &self.text[..self.text.floor_char_boundary(self.at + WINDOW_BYTES)];
        let mut nothing = Effects::default();
        let mut ahead = Scan::new(text, &mut nothing, 0);
        ahead.at = self.at + 1;
        let first = ahead.argument(&self.literals);
        let second = if ahead.next_argument() { ahead.argument(&self.literals) } else { None };
        [first, second]
    }

    /// Returns the literal at the current position: `"x"`, `mode="x"`, `["x", …]`, or a variable with a literal value.
    fn argument(&mut self, known: &[(&'t str, &'t str)]) -> Option<&'t str> {
        let is_opening = |b: u8| b.is_ascii_whitespace() || matches!(b, b'[' | b'(' | b'=');
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if is_opening(byte) {
                self.at += 1;
            } else if matches!(byte, b'"' | b'\'') {
                return Some(self.string());
            } else if byte.is_ascii_alphabetic() || byte == b'_' {
                let name = self.name();
                let next = self.text.as_bytes().get(self.at).copied().unwrap_or(0);
                let prefixes = name.len() <= 2 && matches!(next, b'"' | b'\'');
                if !prefixes && next != b'=' {
                    return known
                        .iter()
                        .rev()
                        .find(|(known, _)| *known == name)
                        .map(|(_, value)| *value);
                }
            } else {
                return None;
            }
        }
    }

    /// Skips to the next argument of this call.
    fn next_argument(&mut self) -> bool {
        let mut open = 0_usize;
        while let Some(&byte) = self.text.as_bytes().get(self.at) {
            match byte {
                b'"' | b'\'' => {
                    self.string();
                    continue;
                }
                b'(' | b'[' | b'{' => open += 1,
                b')' | b']' | b'}' if open == 0 => return false,
                b')' | b']' | b'}' => open -= 1,
                b',' if open == 0 => {
                    self.at += 1;
                    return true;
                }
                _ => {}
            }
            self.at += 1;
        }
        false
    }

    fn call(&mut self, name: &'t str) {
        let last = name.rsplit('.').next().unwrap_or(name);
        let dotted = name.len() > last.len();
        let known = known_call(last);
        let in_subprocess = name.starts_with("subprocess");
        let has_arguments = known.is_some() || in_subprocess || !dotted;
        let [first, second] = if has_arguments { self.literals() } else { [None, None] };
        match known {
            Some(Call::Path) => self.path = first,
            Some(Call::Open) => self.open(first, second),
            Some(Call::WriteThisPath) => self.write(self.path),
            Some(Call::Write) => self.write(first),
            Some(Call::ReadThisPath) => self.read(self.path),
            Some(Call::Read) => self.read(first),
            Some(Call::RunCommand) => self.start(first),
            None => self.other_call(name, last, first),
        }
    }

    fn other_call(&mut self, name: &'t str, last: &'t str, first: Option<&'t str>) {
        let kind = match last {
            "run" | "call" if name.starts_with("subprocess") || name.starts_with("sp.") => {
                return self.start(first);
            }
            "main" if name == "pytest.main" || name == "unittest.main" => Kind::Test,
            _ if name.len() > last.len() => return,
            "final_answer" | "finish" | "submit" => Kind::Finish,
            _ if self.defined.contains(&last) => return,
            _ => return self.tool(last, first),
        };
        self.has_effect = true;
        self.effects.add_kind(kind);
    }

    fn read(&mut self, path: Option<&str>) {
        if let Some(path) = path {
            self.effects.read(path, None);
        }
    }

    /// The call writes a file even if its path is unknown.
    fn write(&mut self, path: Option<&str>) {
        self.has_effect = true;
        self.effects.add_kind(Kind::Edit);
        if let Some(path) = path {
            self.effects.write(path);
        }
    }

    fn open(&mut self, path: Option<&str>, mode: Option<&str>) {
        let mode = mode.unwrap_or("r");
        if mode.len() <= 3 && mode.contains(['w', 'a', 'x', '+']) {
            self.write(path);
        } else {
            self.read(path);
        }
    }

    /// Handles a command line, or a list with the words of one.
    fn start(&mut self, first: Option<&str>) {
        let Some(first) = first else { return };
        let before = self.text.get(self.at + 1..).unwrap_or("").trim_start();
        self.has_effect = true;
        if before.starts_with('[') {
            let end = before.find(']').unwrap_or(before.len().min(400));
            let list = before.get(1..end).unwrap_or("");
            let words: String =
                list.chars().map(|c| if matches!(c, ',' | '"' | '\'') { ' ' } else { c }).collect();
            command::walk(&words, self.effects, self.depth + 1);
        } else {
            command::walk(first, self.effects, self.depth + 1);
        }
    }

    /// Handles a tool of the agent that is called as a function.
    fn tool(&mut self, name: &str, first: Option<&'t str>) {
        let Some(kind) = tools::called_kind(name) else { return };
        self.has_effect = true;
        self.effects.add_kind(kind);
        self.effects.command(name, "");
        if let Some(query) = first.or(self.query) {
            self.effects.add_query(query);
        }
    }
}

/// A function whose effect on files and programs is known.
enum Call {
    Path,
    Open,
    /// Writes the last [`Call::Path`].
    WriteThisPath,
    Write,
    /// Reads the last [`Call::Path`].
    ReadThisPath,
    Read,
    RunCommand,
}

fn known_call(name: &str) -> Option<Call> {
    Some(match name {
        "Path" | "PosixPath" => Call::Path,
        "open" => Call::Open,
        "write_text" | "write_bytes" => Call::WriteThisPath,
        "to_csv" | "to_json" | "to_excel" | "savefig" | "writeFileSync" | "writeFile"
        | "appendFileSync" | "appendFile" | "copyfile" | "copy2" => Call::Write,
        "read_text" | "read_bytes" => Call::ReadThisPath,
        "read_csv" | "read_excel" | "read_json" | "readFileSync" | "readFile" | "load_workbook" => {
            Call::Read
        }
        "system" | "popen" | "check_output" | "check_call" | "getoutput" | "Popen" | "execSync" => {
            Call::RunCommand
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str) -> String {
        let mut effects = Effects::default();
        walk(text, &mut effects, 0);
        let names = |files: &[super::super::FileRef]| {
            files.iter().map(|file| file.path.clone()).collect::<Vec<_>>().join(",")
        };
        format!(
            "{:?} r[{}] w[{}] q[{}]",
            effects.primary().unwrap_or(Kind::Message),
            names(&effects.reads),
            names(&effects.writes),
            effects.query.as_deref().unwrap_or("")
        )
    }

    #[test]
    fn effects_are_derived_from_calls() {
        for (text, want) in [
            ("print(1 + 1)", "Run r[] w[] q[]"),
            ("with open('a.txt') as f:\n  print(f.read())", "Run r[a.txt] w[] q[]"),
            ("open('a.txt', 'w').write('x')", "Edit r[] w[a.txt] q[]"),
            ("open(\"a.txt\", mode='a')", "Edit r[] w[a.txt] q[]"),
            ("Path('b.md').write_text(s)", "Edit r[] w[b.md] q[]"),
            (
                "p = pathlib.Path('b.md')\ns = p.read_text()\np.write_text(s)",
                "Edit r[b.md] w[b.md] q[]",
            ),
            ("# open('a', 'w')\ns = \"open('a', 'w')\"", "Run r[] w[] q[]"),
            ("p='a.py'\ns=open(p).read()\nopen(p,'w').write(s)", "Edit r[a.py] w[a.py] q[]"),
            ("open(f'{d}/x', 'w')", "Edit r[] w[{d}/x] q[]"),
            ("open(path, \"w\")", "Edit r[] w[] q[]"),
            ("df.to_csv('o.csv')", "Edit r[] w[o.csv] q[]"),
            ("import subprocess\nsubprocess.run(['pytest', '-q'])", "Test r[] w[] q[]"),
            ("os.system('cat x.py')", "Read r[x.py] w[] q[]"),
            ("r = web_search(query=\"who won\")\nprint(r)", "Search r[] w[] q[who won]"),
            (
                "query = 'best pizza'\nresults = perform_web_search(query)",
                "Search r[] w[] q[best pizza]",
            ),
            ("def search_in(x):\n  pass\nsearch_in('a')", "Run r[] w[] q[]"),
            ("final_answer('42')", "Finish r[] w[] q[]"),
            ("m = re.search('a', s)", "Run r[] w[] q[]"),
            ("fs.writeFileSync('a.js', x)", "Edit r[] w[a.js] q[]"),
            ("s = '''open('x','w')'''\nprint(s)", "Run r[] w[] q[]"),
            ("out = visit_webpage('https://a.b')", "Read r[] w[] q[https://a.b]"),
        ] {
            assert_eq!(show(text), want, "{text:?}");
        }
    }
}
