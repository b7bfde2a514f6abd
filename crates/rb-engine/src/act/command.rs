//! What a command line does: every command in it is named, classed, and asked for its files.
//!
//! Decoration is looked through: `cd`, assignments, `sudo`, `timeout 10`, `bash -c "…"`, `xargs`. Filters fed
//! by a pipe (`| head`, `| sort`) say nothing about the act and are left out of its kind.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::Kind;
use super::code;
use super::files::{Lines, looks_like_path};
use super::parts::Parts;
use super::patch;
use super::programs;
use super::shell::{self, Simple};

/// Command lines inside command lines are followed this far.
const DEPTH_MAX: usize = 3;
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
pub(super) fn walk(text: &str, parts: &mut Parts, depth: usize) {
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
    pub(super) parts: &'r mut Parts,
    pub(super) depth: usize,
}

impl<'r, 'a> Reader<'r, 'a> {
    fn read(&mut self) {
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
            canon.push_str(crate::text::head(body, CANON_BYTES_MAX));
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
            "tee" => {
                self.note(program, Kind::Edit);
                self.plain_words().for_each(|target| self.parts.write(target));
            }
            "rm" | "rmdir" | "unlink" => {
                self.note(program, Kind::Run);
                self.plain_words().for_each(|target| self.parts.remove(target));
            }
            "mv" | "cp" | "install" | "ln" | "rsync" => self.copy(program),
            "touch" | "truncate" => {
                self.note(program, Kind::Edit);
                self.plain_words().for_each(|target| self.parts.write(target));
            }
            "bash" | "sh" | "zsh" | "dash" | "ash" | "fish" => self.shell(program),
            "eval" => {
                walk(&self.words.get(1..).unwrap_or(&[]).join(" "), self.parts, self.depth + 1)
            }
            "xargs" | "parallel" => self.xargs(),
            "apply_patch" | "patch" => {
                self.note(program, Kind::Edit);
                let body = self.simple.heredoc.unwrap_or_else(|| self.word(1));
                patch::walk(&body, self.parts);
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
        self.parts.command(program, "");
        self.parts.note(kind);
    }

    fn change_folder(&mut self) {
        let to = self.word(1);
        if !to.is_empty() && !to.starts_with('-') && !to.contains(['$', '`', '*']) {
            self.parts.base = super::files::normalise(&self.parts.base, &to);
        }
    }

    fn say(&mut self) {
        if self.words.iter().any(|word| FINISH_MARKS.contains(&word.trim())) {
            self.note("submit", Kind::Finish);
        }
        self.outputs(true);
    }

    /// `cat f`, `head -n 20 f`, `ls dir`, and filters with a file of their own.
    fn show_files(&mut self, program: &str) {
        if program == "tail" && self.has_option(&["-f", "-F", "--follow"]) {
            self.note(program, Kind::Poll);
        }
        let count = self.option(&["-n", "--lines"]).or_else(|| self.short_count());
        let lines = range_shown(program, count);
        let takes_value =
            matches!(program, "head" | "tail" | "sort" | "cut" | "nl" | "od" | "xxd" | "tree");
        let mut skip_next = false;
        let mut files = Vec::new();
        for word in self.words.iter().skip(1) {
            if std::mem::take(&mut skip_next) || (word.starts_with('-') && word.len() > 1) {
                skip_next =
                    takes_value && is_lone_option(word) && !(program == "tail" && word == "-f");
            } else if !matches!(program, "tr" | "fold") {
                files.push(word.as_ref());
            }
        }
        files.extend(self.simple.input.iter().map(AsRef::as_ref));
        let writes = !self.simple.outputs.is_empty();
        if files.is_empty() && (self.simple.piped || self.simple.heredoc.is_some() || writes) {
            self.outputs(true);
            return; // A filter, or `cat > f`: the neighbours say what the act is.
        }
        self.note(program, Kind::Read);
        if program == "diff" || program == "cmp" {
            self.parts.verifies = true;
        }
        files.iter().for_each(|file| self.parts.read(file, lines));
        self.outputs(true);
    }

    /// `head -20 f`.
    fn short_count(&self) -> Option<&'r str> {
        let digits =
            |word: &str| word.len() > 1 && word.bytes().skip(1).all(|b| b.is_ascii_digit());
        self.words.iter().find(|word| word.starts_with('-') && digits(word)).map(|word| &word[1..])
    }

    /// `awk '…' f`, `jq . f`: the first plain word is the programme, the rest are files.
    fn filter(&mut self, program: &str) {
        let files: Vec<&str> = self.plain_words().skip(1).filter(|w| looks_like_path(w)).collect();
        if self.has_option(&["-i", "--in-place", "inplace"]) && !files.is_empty() {
            self.note(program, Kind::Edit);
            files.iter().for_each(|file| self.parts.write(file));
        } else if !files.is_empty() || self.simple.input.is_some() {
            self.note(program, Kind::Read);
            files.iter().for_each(|file| self.parts.read(file, None));
        } else if !self.simple.piped {
            self.note(program, Kind::Run);
        }
        self.outputs(true);
    }

    /// `sed -i`, `perl -pi -e` write; `sed -n '1,20p'` reads lines; a script of perl runs.
    fn stream_edit(&mut self, program: &str) {
        let in_place = self.words.iter().skip(1).any(|word| {
            word.starts_with("--in-place")
                || (word.starts_with('-')
                    && !word.starts_with("--")
                    && word.contains('i')
                    && is_flag_group(word))
        });
        let explicit = self.has_option(&["-e", "-f", "--expression"])
            || (program == "perl"
                && self.words.iter().any(|w| w.starts_with('-') && w.ends_with('e')));
        let mut script = None;
        let mut files = Vec::new();
        let mut after_e = false;
        for word in self.words.iter().skip(1) {
            if std::mem::take(&mut after_e)
                || (script.is_none() && !explicit && !word.starts_with('-'))
            {
                script = Some(word.as_ref());
            } else if word.starts_with('-') {
                after_e = word.ends_with('e') || *word == "-f" || *word == "--expression";
            } else if !word.is_empty() {
                files.push(word.as_ref());
            }
        }
        if in_place {
            self.note(program, Kind::Edit);
            files.iter().for_each(|file| self.parts.write(file));
        } else if program == "perl" && !explicit {
            self.note(program, Kind::Run);
            self.parts.verifies = true;
        } else if !files.is_empty() || !self.simple.piped {
            self.note(program, Kind::Read);
            let lines = script.as_deref().and_then(printed_lines);
            files.iter().for_each(|file| self.parts.read(file, lines));
        }
        self.outputs(true);
    }

    fn search(&mut self, program: &str) {
        self.note(program, Kind::Search);
        let named = self.option(&["-e", "--regexp"]);
        let mut words = Vec::new();
        let mut skip_next = false;
        for word in self.words.iter().skip(1) {
            if std::mem::take(&mut skip_next) {
                continue;
            }
            if word.starts_with('-') && word.len() > 1 {
                let valued = [
                    "-A",
                    "-B",
                    "-C",
                    "-m",
                    "-e",
                    "-f",
                    "-g",
                    "-t",
                    "-T",
                    "--include",
                    "--exclude",
                    "--glob",
                ];
                skip_next = valued.contains(&word.as_ref());
            } else {
                words.push(word.as_ref());
            }
        }
        let mut words = words.into_iter();
        if let Some(query) = named.or_else(|| words.next()) {
            self.parts.ask(&query);
        }
        words.for_each(|path| self.parts.read(&path, None));
        self.outputs(true);
    }

    /// `find dir -name x`; what it executes is an act of its own.
    fn find(&mut self, program: &str) {
        let exec = self
            .words
            .iter()
            .position(|word| matches!(word.as_ref(), "-exec" | "-execdir" | "-ok"));
        self.note(program, Kind::Search);
        if let Some(query) =
            self.option(&["-name", "-iname", "-path", "-ipath", "-regex", "-wholename"])
        {
            self.parts.ask(&query);
        } else if program != "find" {
            let query = self.plain_words().next().unwrap_or("");
            self.parts.ask(&query);
        }
        if program == "find" {
            let folders: Vec<&str> = self
                .words
                .iter()
                .skip(1)
                .take_while(|w| !w.starts_with(['-', '(', '!']))
                .map(AsRef::as_ref)
                .collect();
            folders.iter().for_each(|folder| self.parts.read(folder, None));
        }
        if self.has_option(&["-delete"]) {
            self.note(program, Kind::Run);
        }
        if let Some(at) = exec
            && self.depth < DEPTH_MAX
        {
            let words = self.words.get(at + 1..).unwrap_or(&[]);
            let end =
                words.iter().position(|w| matches!(w.as_ref(), ";" | "+")).unwrap_or(words.len());
            let words = words.get(..end).unwrap_or(&[]);
            Reader { words, simple: self.simple, parts: self.parts, depth: self.depth + 1 }.read();
        }
    }

    fn copy(&mut self, program: &str) {
        self.note(program, Kind::Edit);
        let mut paths: Vec<&str> = self.plain_words().collect();
        if let Some(to) = paths.pop() {
            self.parts.write(&to);
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
            programs::run_script(self, program, &file);
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
        pages.iter().for_each(|page| self.parts.read(page, None));
    }

    /// Files that receive the output. Text tools write what they are told to; the log of a test run is no edit.
    fn outputs(&mut self, is_content: bool) {
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
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

/// `-n` alone takes the next word; `-n20` and `-20` do not.
fn is_lone_option(word: &str) -> bool {
    matches!(
        word,
        "-n" | "-c"
            | "-k"
            | "-t"
            | "-d"
            | "-f"
            | "-b"
            | "-v"
            | "-w"
            | "-L"
            | "-l"
            | "-N"
            | "-j"
            | "-s"
    )
}

/// `-i`, `-ni`, `-pi.bak`: a group of letters, not `--posix`.
fn is_flag_group(word: &str) -> bool {
    let letters = word.get(1..).unwrap_or("").split('.').next().unwrap_or("");
    letters.len() <= 4 && letters.bytes().all(|b| b.is_ascii_alphabetic())
}

fn range_shown(program: &str, count: Option<&str>) -> Option<Lines> {
    match program {
        "head" => Some(Lines { from: 1, to: count.map_or(Some(10), |n| n.parse().ok())? }),
        // Counted from the end: a place of its own, high up, so that it meets no range from the top.
        "tail" => match count.and_then(|n| n.strip_prefix('+')) {
            Some(from) => Some(Lines { from: from.parse().ok()?, to: u32::MAX }),
            None => {
                let count: u32 = count.map_or(Some(10), |n| n.parse().ok())?;
                Some(Lines { from: u32::MAX.saturating_sub(count), to: u32::MAX })
            }
        },
        _ => None,
    }
}

/// `10,20p` and `10p`; also the first range of several.
fn printed_lines(script: &str) -> Option<Lines> {
    let end = script.find('p')?;
    let (from, to) = script[..end].split_once(',').unwrap_or((&script[..end], &script[..end]));
    let from: u32 = from.trim().parse().ok()?;
    let to = to.trim();
    let to = match to.strip_prefix('+') {
        Some(more) => from.saturating_add(more.parse().ok()?),
        None if to == "$" => u32::MAX,
        None => to.parse().ok()?,
    };
    Some(Lines { from, to })
}
