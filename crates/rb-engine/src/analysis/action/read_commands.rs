//! Commands that show and find text: which files, which lines, what was asked for.

use super::Kind;
use super::command::{DEPTH_MAX, Reader};
use super::file_refs::{Lines, looks_like_path};

impl<'r> Reader<'r, '_> {
    /// `cat f`, `head -n 20 f`, `ls dir`, and filters with a file of their own.
    pub(super) fn show_files(&mut self, program: &str) {
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
        if files.is_empty() && self.simple.piped {
            self.parts.narrow(lines);
        }
        if files.is_empty() && (self.simple.piped || self.simple.heredoc.is_some() || writes) {
            self.outputs(true);
            return; // A filter, or `cat > f`: the neighbours say what the act is.
        }
        self.note(program, Kind::Read);
        if program == "diff" || program == "cmp" {
            self.parts.verifies = true;
        }
        for file in &files {
            self.parts.read(file, lines);
        }
        self.parts.shows = files.len() == 1 && matches!(program, "cat" | "nl" | "bat" | "batcat");
        self.outputs(true);
    }

    /// `head -20 f`.
    fn short_count(&self) -> Option<&'r str> {
        let digits =
            |word: &str| word.len() > 1 && word.bytes().skip(1).all(|b| b.is_ascii_digit());
        self.words.iter().find(|word| word.starts_with('-') && digits(word)).map(|word| &word[1..])
    }

    /// `awk '…' f`, `jq . f`: the first plain word is the programme, the rest are files.
    pub(super) fn filter(&mut self, program: &str) {
        self.parts.shows = false;
        let files: Vec<&str> = self.plain_words().skip(1).filter(|w| looks_like_path(w)).collect();
        if self.has_option(&["-i", "--in-place", "inplace"]) && !files.is_empty() {
            self.note(program, Kind::Edit);
            for file in &files {
                self.parts.write(file);
            }
        } else if !files.is_empty() || self.simple.input.is_some() {
            self.note(program, Kind::Read);
            for file in &files {
                self.parts.read(file, None);
            }
        } else if !self.simple.piped {
            self.note(program, Kind::Run);
        }
        self.outputs(true);
    }

    /// `sed -i`, `perl -pi -e` write; `sed -n '1,20p'` reads lines; a script of perl runs.
    pub(super) fn stream_edit(&mut self, program: &str) {
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
                || (script.is_none() && !explicit && !word.starts_with('-') && !word.is_empty())
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
            for file in &files {
                self.parts.write(file);
            }
        } else if program == "perl" && !explicit {
            self.note(program, Kind::Run);
            self.parts.verifies = true;
        } else if !files.is_empty() || !self.simple.piped {
            self.note(program, Kind::Read);
            let lines = script.and_then(printed_lines);
            for file in &files {
                self.parts.read(file, lines);
            }
        } else {
            self.parts.narrow(script.and_then(printed_lines));
        }
        self.outputs(true);
    }

    pub(super) fn search(&mut self, program: &str) {
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
            self.parts.ask(query);
        }
        for path in words {
            self.parts.read(path, None);
        }
        self.outputs(true);
    }

    /// `find dir -name x`; what it executes is an act of its own.
    pub(super) fn find(&mut self, program: &str) {
        let exec = self
            .words
            .iter()
            .position(|word| matches!(word.as_ref(), "-exec" | "-execdir" | "-ok"));
        self.note(program, Kind::Search);
        if let Some(query) =
            self.option(&["-name", "-iname", "-path", "-ipath", "-regex", "-wholename"])
        {
            self.parts.ask(query);
        } else if program != "find" {
            let query = self.plain_words().next().unwrap_or("");
            self.parts.ask(query);
        }
        if program == "find" {
            let folders: Vec<&str> = self
                .words
                .iter()
                .skip(1)
                .take_while(|w| !w.starts_with(['-', '(', '!']))
                .map(AsRef::as_ref)
                .collect();
            for folder in &folders {
                self.parts.read(folder, None);
            }
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
        "tail" => {
            if let Some(from) = count.and_then(|n| n.strip_prefix('+')) {
                Some(Lines { from: from.parse().ok()?, to: u32::MAX })
            } else {
                let count: u32 = count.map_or(Some(10), |n| n.parse().ok())?;
                Some(Lines { from: u32::MAX.saturating_sub(count), to: u32::MAX })
            }
        }
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
