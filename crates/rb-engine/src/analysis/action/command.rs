//! Finds the effects of a command line: the kind of every command, and its files.
//!
//! Wrappers and decoration are skipped: `cd`, assignments, `sudo`, `timeout 10`, `bash -c "…"`, `xargs`. Filters in a
//! pipe (`| head`, `| sort`) do not determine the kind.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::Kind;
use super::code;
use super::effects::Effects;
use super::patch;
use super::programs;
use super::shell::{self, Simple};

/// Maximum depth of nested command lines.
pub(super) const DEPTH_MAX: usize = 3;
/// Maximum number of wrappers around a command.
const WRAPPERS_MAX: usize = 6;
/// Maximum size of the canonical form.
const CANONICAL_BYTES_MAX: usize = 16 * 1024;

/// Texts that agents print to report that they are done.
const FINISH_MARKS: [&str; 4] = [
    "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
    "MINI_SWE_AGENT_FINAL_OUTPUT",
    "<<<FINISHED>>>",
    "TASK_COMPLETE",
];

/// Adds the effects of a command line to `effects`.
pub(super) fn walk(text: &str, effects: &mut Effects, depth: usize) {
    if depth > DEPTH_MAX {
        return;
    }
    let script = shell::split(text);
    for command in &script.commands {
        Reader { words: &command.words, simple: command, effects, depth }.read();
    }
    for inner in &script.inner {
        walk(inner, effects, depth + 1);
    }
}

/// Analyses one command.
pub(super) struct Reader<'r, 'a> {
    pub(super) words: &'r [Cow<'a, str>],
    pub(super) simple: &'r Simple<'a>,
    pub(super) effects: &'r mut Effects,
    pub(super) depth: usize,
}

impl<'r, 'a> Reader<'r, 'a> {
    pub(super) fn read(&mut self) {
        self.skip_keywords();
        for _ in 0..WRAPPERS_MAX {
            let skip = wrapper_len(self.words);
            if skip == 0 {
                break;
            }
            self.words = self.words.get(skip..).unwrap_or(&[]);
            self.skip_keywords();
        }
        let Some(first) = self.words.first() else {
            // `> f` alone truncates a file.
            self.outputs(true);
            return;
        };
        let program = base_name(first);
        if program.is_empty() {
            return;
        }
        let decoration =
            matches!(program, "cd" | "echo" | "printf" | "set" | "true" | "export" | ":" | "pwd");
        if !decoration || !self.simple.outputs.is_empty() {
            self.add_to_canonical(program);
        }
        self.program(program);
    }

    /// Skips shell keywords and assignments before the program.
    fn skip_keywords(&mut self) {
        while let Some(word) = self.words.first() {
            match word.as_ref() {
                "if" | "then" | "else" | "elif" | "while" | "until" | "do" | "!" | "{" | "}"
                | "time" | "fi" | "done" | "esac" => {}
                "for" | "case" | "select" | "function" | "[[" | "[" | "test" => {
                    self.words = &[];
                    return;
                }
                assignment if is_assignment(assignment) => {}
                _ => return,
            }
            self.words = self.words.get(1..).unwrap_or(&[]);
        }
    }

    fn add_to_canonical(&mut self, program: &str) {
        let canonical = &mut self.effects.canonical;
        if canonical.len() > CANONICAL_BYTES_MAX {
            return;
        }
        canonical.push_str(program);
        for word in self.words.iter().skip(1) {
            canonical.push(' ');
            canonical.push_str(word);
        }
        for output in &self.simple.outputs {
            let _ = write!(canonical, " >{output}");
        }
        if let Some(body) = self.simple.heredoc {
            canonical.push(' ');
            canonical.push_str(&body[..body.floor_char_boundary(CANONICAL_BYTES_MAX)]);
        }
        canonical.push(if self.simple.piped { '|' } else { ';' });
    }

    pub(super) fn word(&self, index: usize) -> &'r str {
        let words = self.words;
        words.get(index).map_or("", AsRef::as_ref)
    }

    /// Returns the words after the program that are not options.
    pub(super) fn plain_words(&self) -> impl Iterator<Item = &'r str> + use<'r, 'a> {
        self.words
            .iter()
            .skip(1)
            .map(AsRef::as_ref)
            .filter(|word| !word.starts_with('-') || *word == "-")
    }

    pub(super) fn has_option(&self, names: &[&str]) -> bool {
        self.words.iter().any(|word| names.contains(&word.as_ref()))
    }

    /// Returns the value of an option, written `-n 3`, `-n3` or `--lines=3`.
    pub(super) fn option(&self, names: &[&str]) -> Option<&'r str> {
        self.words.iter().enumerate().skip(1).find_map(|(index, word)| {
            let name = names.iter().find(|name| word.starts_with(**name))?;
            let rest = &word[name.len()..];
            match rest.strip_prefix('=') {
                Some(value) => Some(value),
                None if rest.is_empty() => self.words.get(index + 1).map(AsRef::as_ref),
                None if name.len() == 2 => Some(rest),
                None => None,
            }
        })
    }

    fn program(&mut self, program: &str) {
        match program {
            "cd" | "pushd" => self.change_folder(),
            "echo" | "printf" => self.print_text(),
            "cat" | "tac" | "less" | "more" | "bat" | "batcat" | "nl" | "view" | "head"
            | "tail" | "wc" | "stat" | "file" | "strings" | "xxd" | "od" | "hexdump" | "md5sum"
            | "sha256sum" | "du" | "diff" | "cmp" | "sort" | "uniq" | "cut" | "column" | "zcat"
            | "ls" | "tree" | "dir" | "readlink" | "realpath" | "open" | "comm" | "paste"
            | "tr" | "fold" | "rev" | "fmt" => self.show_files(program),
            "awk" | "gawk" | "jq" | "yq" | "xmllint" => self.filter(program),
            "sed" | "perl" => self.stream_edit(program),
            "grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack" | "zgrep" | "search_dir"
            | "search_file" | "find_file" => self.search(program),
            "find" | "fd" | "fdfind" | "locate" => self.find(program),
            "rm" | "rmdir" | "unlink" => {
                self.add_kind(program, Kind::Run);
                for target in self.plain_words() {
                    self.effects.remove(target);
                }
            }
            "mv" | "cp" | "install" | "ln" | "rsync" => self.copy(program),
            "tee" | "touch" | "truncate" => {
                self.add_kind(program, Kind::Edit);
                for target in self.plain_words() {
                    self.effects.write(target);
                }
            }
            "bash" | "sh" | "zsh" | "dash" | "ash" | "fish" => self.shell(program),
            "eval" => {
                walk(&self.words.get(1..).unwrap_or(&[]).join(" "), self.effects, self.depth + 1);
            }
            "xargs" | "parallel" => self.xargs(),
            "apply_patch" | "patch" => {
                self.add_kind(program, Kind::Edit);
                let body = self.simple.heredoc.unwrap_or_else(|| self.word(1));
                patch::walk(body, self.effects);
            }
            "sleep" | "wait" | "watch" | "ps" | "jobs" | "top" | "htop" | "pgrep" | "uptime" => {
                self.add_kind(program, Kind::Poll);
            }
            "true" | "false" | ":" | "set" | "export" | "unset" | "source" | "." | "alias"
            | "pwd" | "exit" | "return" | "break" | "continue" | "local" | "declare" | "read"
            | "shift" | "trap" | "popd" | "shopt" | "umask" | "ulimit" | "hash" | "clear" => {}
            "which" | "whereis" | "type" | "man" | "whoami" | "id" | "uname" | "hostname"
            | "date" | "env" | "printenv" | "df" | "free" | "nproc" | "lsof" | "history"
            | "tldr" => self.add_kind(program, Kind::Read),
            "curl" | "wget" | "http" | "https" => self.fetch(program),
            "submit" | "finish" | "exit_forfeit" => self.add_kind(program, Kind::Finish),
            _ => programs::classify(self, program),
        }
        self.outputs(false);
    }

    /// Records the command and its kind.
    pub(super) fn add_kind(&mut self, program: &str, kind: Kind) {
        self.effects.prints_file = false;
        self.effects.command(program, "");
        self.effects.add_kind(kind);
    }

    fn change_folder(&mut self) {
        let to = self.word(1);
        if !to.is_empty() && !to.starts_with('-') && !to.contains(['$', '`', '*']) {
            self.effects.base = super::file_refs::normalise(&self.effects.base, to);
        }
    }

    fn print_text(&mut self) {
        if self.words.iter().any(|word| FINISH_MARKS.contains(&word.trim())) {
            self.add_kind("submit", Kind::Finish);
        }
        self.outputs(true);
    }

    fn copy(&mut self, program: &str) {
        self.add_kind(program, Kind::Edit);
        let mut paths: Vec<&str> = self.plain_words().collect();
        if let Some(to) = paths.pop() {
            self.effects.write(to);
        }
        for from in &paths {
            self.effects.read(from, None);
            if program == "mv" {
                self.effects.remove(from);
            }
        }
    }

    /// Handles `bash -c "…"` (nested command line), `bash f` (runs a script) and `bash <<EOF` (here-document).
    fn shell(&mut self, program: &str) {
        let command = self
            .words
            .iter()
            .position(|w| w.starts_with('-') && !w.starts_with("--") && w.ends_with('c'));
        if let Some(inner) = command.and_then(|at| self.words.get(at + 1)) {
            walk(inner, self.effects, self.depth + 1);
        } else if let Some(body) = self.simple.heredoc {
            walk(body, self.effects, self.depth + 1);
        } else if let Some(file) = self.plain_words().next() {
            programs::run_script(self, program, file);
        } else {
            self.add_kind(program, Kind::Run);
        }
    }

    /// Handles the command that `xargs` runs; its files are unknown.
    fn xargs(&mut self) {
        let mut at = 1;
        while let Some(word) = self.words.get(at).filter(|word| word.starts_with('-')) {
            at += if matches!(word.as_ref(), "-I" | "-n" | "-P" | "-d" | "-L") { 2 } else { 1 };
        }
        let words = self.words.get(at..).unwrap_or(&[]);
        if self.depth < DEPTH_MAX && !words.is_empty() {
            Reader { words, simple: self.simple, effects: self.effects, depth: self.depth + 1 }
                .read();
        }
    }

    /// Handles HTTP clients: a request that sends data changes something, any other reads.
    fn fetch(&mut self, program: &str) {
        let method = self.option(&["-X", "--request", "--method"]).unwrap_or("");
        let sends = ["POST", "PUT", "PATCH", "DELETE"].contains(&method)
            || self
                .words
                .iter()
                .any(|word| word.starts_with("--data") || word.starts_with("--post"))
            || self.has_option(&["-d", "-F", "--form", "-T", "--upload-file", "--json"]);
        self.add_kind(program, if sends && method != "GET" { Kind::Change } else { Kind::Read });
        let pages: Vec<&str> = self
            .words
            .iter()
            .filter(|w| w.contains("://") || w.starts_with("localhost"))
            .map(AsRef::as_ref)
            .collect();
        for page in &pages {
            self.effects.read(page, None);
        }
    }

    /// Records the files that receive the output. Text tools write content; the log of a test run is not an edit.
    pub(super) fn outputs(&mut self, is_content: bool) {
        for output in &self.simple.outputs {
            let thrown_away = output.starts_with("/dev/") || output.is_empty();
            if thrown_away {
                continue;
            }
            self.effects.write(output);
            let log =
                [".log", ".out", ".err", ".patch", ".diff"].iter().any(|end| output.ends_with(end));
            if is_content && !log {
                self.effects.add_kind(Kind::Edit);
            }
        }
    }

    /// Handles the code given to an interpreter after `-c` or `-e`, or as a here-document.
    pub(super) fn inline_code(&mut self, flag: &str) -> bool {
        let given =
            self.words.iter().position(|word| word == flag).and_then(|at| self.words.get(at + 1));
        let code = match (given, self.simple.heredoc) {
            (Some(code), _) => code.as_ref(),
            (None, Some(body)) => body,
            (None, None) => return false,
        };
        code::walk(code, self.effects, self.depth + 1);
        true
    }

    /// Treats output that an interpreter or an unknown program writes into a file as an edit.
    pub(super) fn product(&mut self) {
        if !self.simple.outputs.iter().all(|output| output.starts_with("/tmp/")) {
            self.outputs(true);
        }
    }
}

/// Returns the number of leading words that belong to a wrapper.
fn wrapper_len(words: &[Cow<'_, str>]) -> usize {
    let word = |index: usize| words.get(index).map_or("", AsRef::as_ref);
    let options = |from: usize| {
        words.iter().skip(from).take_while(|w| w.starts_with('-') || is_assignment(w)).count()
    };
    match base_name(word(0)) {
        "sudo" | "doas" if matches!(word(1), "-u" | "-g") => 3,
        "sudo" | "doas" | "nohup" | "command" | "exec" | "builtin" | "nice" | "ionice"
        | "stdbuf" | "xvfb-run" | "unbuffer" | "setsid" | "npx" | "bunx" | "strace"
        | "catchsegv" => 1 + options(1),
        "env" if words.len() > 1 => 1 + options(1),
        "timeout" | "gtimeout" => {
            let skip = if matches!(word(1), "-k" | "-s") { 2 } else { options(1) };
            2 + skip
        }
        "uv" | "poetry" | "pipenv" | "pdm" | "rye" | "hatch" if word(1) == "run" => 2 + options(2),
        "bundle" if word(1) == "exec" => 2,
        "conda" | "mamba" | "micromamba" if word(1) == "run" => {
            if word(2) == "-n" {
                4
            } else {
                2 + options(2)
            }
        }
        "docker" | "podman" if word(1) == "exec" => 3 + options(2),
        _ => 0,
    }
}

pub(super) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(word)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        let name = name.split_once('[').map_or(name, |(name, _)| name);
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}
