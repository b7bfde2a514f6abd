//! What a command line does: every command in it is named, classed, and asked for its files.
//!
//! Decoration is looked through: `cd`, assignments, `sudo`, `timeout 10`, `bash -c "…"`, `xargs`. Filters fed
//! by a pipe (`| head`, `| sort`) say nothing about the act and are left out of its kind.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::Kind;
use super::code;
use super::effects::Effects;
use super::patch;
use super::programs;
use super::shell::{self, Simple};

/// Command lines inside command lines are followed this far.
pub(super) const DEPTH_MAX: usize = 3;
/// Wrappers around a command are looked through this often.
const WRAPPERS_MAX: usize = 6;
/// The canonical form keeps no more than this.
const CANON_BYTES_MAX: usize = 16 * 1024;

/// Words by which agents say that they are done, printed by a command.
const FINISH_MARKS: [&str; 4] = [
    "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
    "MINI_SWE_AGENT_FINAL_OUTPUT",
    "<<<FINISHED>>>",
    "TASK_COMPLETE",
];

/// Reads a command line into `parts`.
pub(super) fn walk(text: &str, parts: &mut Effects, depth: usize) {
    if depth > DEPTH_MAX {
        return;
    }
    let script = shell::split(text);
    for command in &script.commands {
        Reader { words: &command.words, simple: command, parts, depth }.read();
    }
    for inner in &script.inner {
        walk(inner, parts, depth + 1);
    }
}

/// One command on its way to being understood.
pub(super) struct Reader<'r, 'a> {
    pub(super) words: &'r [Cow<'a, str>],
    pub(super) simple: &'r Simple<'a>,
    pub(super) parts: &'r mut Effects,
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
            // `> f` alone empties a file.
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
            self.add_to_canon(program);
        }
        self.program(program);
    }

    /// Keywords of the shell and assignments before the program.
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

    fn add_to_canon(&mut self, program: &str) {
        let canon = &mut self.parts.canon;
        if canon.len() > CANON_BYTES_MAX {
            return;
        }
        canon.push_str(program);
        for word in self.words.iter().skip(1) {
            canon.push(' ');
            canon.push_str(word);
        }
        for output in &self.simple.outputs {
            let _ = write!(canon, " >{output}");
        }
        if let Some(body) = self.simple.heredoc {
            canon.push(' ');
            canon.push_str(&body[..body.floor_char_boundary(CANON_BYTES_MAX)]);
        }
        canon.push(if self.simple.piped { '|' } else { ';' });
    }

    pub(super) fn word(&self, index: usize) -> &'r str {
        let words = self.words;
        words.get(index).map_or("", AsRef::as_ref)
    }

    /// Words after the program that are no options.
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

    /// The value of an option, written `-n 3`, `-n3` or `--lines=3`.
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
            "echo" | "printf" => self.say(),
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
                self.note(program, Kind::Run);
                for target in self.plain_words() {
                    self.parts.remove(target);
                }
            }
            "mv" | "cp" | "install" | "ln" | "rsync" => self.copy(program),
            "tee" | "touch" | "truncate" => {
                self.note(program, Kind::Edit);
                for target in self.plain_words() {
                    self.parts.write(target);
                }
            }
            "bash" | "sh" | "zsh" | "dash" | "ash" | "fish" => self.shell(program),
            "eval" => {
                walk(&self.words.get(1..).unwrap_or(&[]).join(" "), self.parts, self.depth + 1);
            }
            "xargs" | "parallel" => self.xargs(),
            "apply_patch" | "patch" => {
                self.note(program, Kind::Edit);
                let body = self.simple.heredoc.unwrap_or_else(|| self.word(1));
                patch::walk(body, self.parts);
            }
            "sleep" | "wait" | "watch" | "ps" | "jobs" | "top" | "htop" | "pgrep" | "uptime" => {
                self.note(program, Kind::Poll);
            }
            "true" | "false" | ":" | "set" | "export" | "unset" | "source" | "." | "alias"
            | "pwd" | "exit" | "return" | "break" | "continue" | "local" | "declare" | "read"
            | "shift" | "trap" | "popd" | "shopt" | "umask" | "ulimit" | "hash" | "clear" => {}
            "which" | "whereis" | "type" | "man" | "whoami" | "id" | "uname" | "hostname"
            | "date" | "env" | "printenv" | "df" | "free" | "nproc" | "lsof" | "history"
            | "tldr" => self.note(program, Kind::Read),
            "curl" | "wget" | "http" | "https" => self.fetch(program),
            "submit" | "finish" | "exit_forfeit" => self.note(program, Kind::Finish),
            _ => programs::classify(self, program),
        }
        self.outputs(false);
    }

    /// This command is of that kind, and is listed.
    pub(super) fn note(&mut self, program: &str, kind: Kind) {
        self.parts.shows = false;
        self.parts.command(program, "");
        self.parts.note(kind);
    }

    fn change_folder(&mut self) {
        let to = self.word(1);
        if !to.is_empty() && !to.starts_with('-') && !to.contains(['$', '`', '*']) {
            self.parts.base = super::file_refs::normalise(&self.parts.base, to);
        }
    }

    fn say(&mut self) {
        if self.words.iter().any(|word| FINISH_MARKS.contains(&word.trim())) {
            self.note("submit", Kind::Finish);
        }
        self.outputs(true);
    }

    fn copy(&mut self, program: &str) {
        self.note(program, Kind::Edit);
        let mut paths: Vec<&str> = self.plain_words().collect();
        if let Some(to) = paths.pop() {
            self.parts.write(to);
        }
        for from in &paths {
            self.parts.read(from, None);
            if program == "mv" {
                self.parts.remove(from);
            }
        }
    }

    /// `bash -c "…"` is what stands inside; `bash f` runs a program; `bash <<EOF` is its input.
    fn shell(&mut self, program: &str) {
        let command = self
            .words
            .iter()
            .position(|w| w.starts_with('-') && !w.starts_with("--") && w.ends_with('c'));
        if let Some(inner) = command.and_then(|at| self.words.get(at + 1)) {
            walk(inner, self.parts, self.depth + 1);
        } else if let Some(body) = self.simple.heredoc {
            walk(body, self.parts, self.depth + 1);
        } else if let Some(file) = self.plain_words().next() {
            programs::run_script(self, program, file);
        } else {
            self.note(program, Kind::Run);
        }
    }

    /// The command that `xargs` is given; its files are unknown.
    fn xargs(&mut self) {
        let mut at = 1;
        while let Some(word) = self.words.get(at).filter(|word| word.starts_with('-')) {
            at += if matches!(word.as_ref(), "-I" | "-n" | "-P" | "-d" | "-L") { 2 } else { 1 };
        }
        let words = self.words.get(at..).unwrap_or(&[]);
        if self.depth < DEPTH_MAX && !words.is_empty() {
            Reader { words, simple: self.simple, parts: self.parts, depth: self.depth + 1 }.read();
        }
    }

    /// Asking the net is reading; sending to it changes something.
    fn fetch(&mut self, program: &str) {
        let method = self.option(&["-X", "--request", "--method"]).unwrap_or("");
        let sends = ["POST", "PUT", "PATCH", "DELETE"].contains(&method)
            || self
                .words
                .iter()
                .any(|word| word.starts_with("--data") || word.starts_with("--post"))
            || self.has_option(&["-d", "-F", "--form", "-T", "--upload-file", "--json"]);
        self.note(program, if sends && method != "GET" { Kind::Change } else { Kind::Read });
        let pages: Vec<&str> = self
            .words
            .iter()
            .filter(|w| w.contains("://") || w.starts_with("localhost"))
            .map(AsRef::as_ref)
            .collect();
        for page in &pages {
            self.parts.read(page, None);
        }
    }

    /// Files that receive the output. Text tools write what they are told to; the log of a test run is no edit.
    pub(super) fn outputs(&mut self, is_content: bool) {
        for output in &self.simple.outputs {
            let thrown_away = output.starts_with("/dev/") || output.is_empty();
            if thrown_away {
                continue;
            }
            self.parts.write(output);
            let log =
                [".log", ".out", ".err", ".patch", ".diff"].iter().any(|end| output.ends_with(end));
            if is_content && !log {
                self.parts.note(Kind::Edit);
            }
        }
    }

    /// The code given to an interpreter: after `-c`/`-e`, or as its input.
    pub(super) fn inline_code(&mut self, flag: &str) -> bool {
        let given =
            self.words.iter().position(|word| word == flag).and_then(|at| self.words.get(at + 1));
        let code = match (given, self.simple.heredoc) {
            (Some(code), _) => code.as_ref(),
            (None, Some(body)) => body,
            (None, None) => return false,
        };
        code::walk(code, self.parts, self.depth + 1);
        true
    }

    /// What an interpreter or an unknown program prints into a file is its product.
    pub(super) fn product(&mut self) {
        if !self.simple.outputs.iter().all(|output| output.starts_with("/tmp/")) {
            self.outputs(true);
        }
    }
}

/// How many words at the front only say how the command is run.
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
