//! Effects of commands that show and search text: files, line ranges, queries.

use super::Kind;
use super::command::{DEPTH_MAX, Reader};
use super::file_refs::{Lines, looks_like_path};

impl<'r> Reader<'r, '_> {
    /// Handles `cat f`, `head -n 20 f`, `ls dir`, and filters with a file argument.
    pub(super) fn show_files(&mut self, program: &str) {
        if program == "tail" && self.has_option(&["-f", "-F", "--follow"]) {
            self.add_kind(program, Kind::Poll);
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
            self.effects.narrow_lines(lines);
        }
        if files.is_empty() && (self.simple.piped || self.simple.heredoc.is_some() || writes) {
            self.outputs(true);
            return; // A filter, or `cat > f`: other commands determine the kind.
        }
        self.add_kind(program, Kind::Read);
        if program == "diff" || program == "cmp" {
            self.effects.verifies = true;
        }
        for file in &files {
            self.effects.read(file, lines);
        }
        self.effects.prints_file =
            files.len() == 1 && matches!(program, "cat" | "nl" | "bat" | "batcat");
        self.outputs(true);
    }

    /// Returns the count of `head -20 f`.
    fn short_count(&self) -> Option<&'r str> {
        let digits =
            |word: &str| word.len() > 1 && word.bytes().skip(1).all(|b| b.is_ascii_digit());
        self.words.iter().find(|word| word.starts_with('-') && digits(word)).map(|word| &word[1..])
    }

    /// Handles `awk '…' f` and `jq . f`: the first plain word is the script, the rest are files.
    pub(super) fn filter(&mut self, program: &str) {
        self.effects.prints_file = false;
        let files: Vec<&str> = self.plain_words().skip(1).filter(|w| looks_like_path(w)).collect();
        if self.has_option(&["-i", "--in-place", "inplace"]) && !files.is_empty() {
            self.add_kind(program, Kind::Edit);
            for file in &files {
                self.effects.write(file);
            }
        } else if !files.is_empty() || self.simple.input.is_some() {
            self.add_kind(program, Kind::Read);
            for file in &files {
                self.effects.read(file, None);
            }
        } else if !self.simple.piped {
            self.add_kind(program, Kind::Run);
        }
        self.outputs(true);
    }

    /// Handles `sed -i` and `perl -pi -e` (edit), `sed -n '1,20p'` (reads lines) and Perl scripts (run).
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
            self.add_kind(program, Kind::Edit);
            for file in &files {
                self.effects.write(file);
            }
        } else if program == "perl" && !explicit {
            self.add_kind(program, Kind::Run);
            self.effects.verifies = true;
        } else if !files.is_empty() || !self.simple.piped {
            self.add_kind(program, Kind::Read);
            let lines = script.and_then(printed_lines);
            for file in &files {
                self.effects.read(file, lines);
            }
        } else {
            self.effects.narrow_lines(script.and_then(printed_lines));
        }
        self.outputs(true);
    }

    pub(super) fn search(&mut self, program: &str) {
        self.add_kind(program, Kind::Search);
        let named = self.option(&["-e", "--regexp"]);
        let mut words = Vec::new();
        let mut skip_next = false;
        for word in self.words.iter().skip(1) {
            if std::mem::take(&mut skip_next) {
                continue;
            }
            if word.starts_with('-') && word.len() > 1 {
                #[rustfmt::skip]
                let valued = [
                    "-A", "-B", "-C", "-m", "-e", "-f", "-g", "-t", "-T", "--include", "--exclude", "--glob",
                ];
                skip_next = valued.contains(&word.as_ref());
            } else {
                words.push(word.as_ref());
            }
        }
        let mut words = words.into_iter();
        if let Some(query) = named.or_else(|| words.next()) {
            self.effects.add_query(query);
        }
        for path in words {
            self.effects.read(path, None);
        }
        self.outputs(true);
    }

    /// Handles `find dir -name x`, and the command after `-exec`.
    pub(super) fn find(&mut self, program: &str) {
        let exec = self
            .words
            .iter()
            .position(|word| matches!(word.as_ref(), "-exec" | "-execdir" | "-ok"));
        self.add_kind(program, Kind::Search);
        if let Some(query) =
            self.option(&["-name", "-iname", "-path", "-ipath", "-regex", "-wholename"])
        {
            self.effects.add_query(query);
        } else if program != "find" {
            let query = self.plain_words().next().unwrap_or("");
            self.effects.add_query(query);
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
                self.effects.read(folder, None);
            }
        }
        if self.has_option(&["-delete"]) {
            self.add_kind(program, Kind::Run);
        }
        if let Some(at) = exec
            && self.depth < DEPTH_MAX
        {
            let words = self.words.get(at + 1..).unwrap_or(&[]);
            let end =
                words.iter().position(|w| matches!(w.as_ref(), ";" | "+")).unwrap_or(words.len());
            let words = words.get(..end).unwrap_or(&[]);
            Reader { words, simple: self.simple, effects: self.effects, depth: self.depth + 1 }
                .read();
        }
    }
}

/// Reports whether an option takes the next word: `-n` does, `-n20` and `-20` do not.
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

/// Matches `-i`, `-ni`, `-pi.bak`, but not `--posix`.
fn is_flag_group(word: &str) -> bool {
    let letters = word.get(1..).unwrap_or("").split('.').next().unwrap_or("");
    letters.len() <= 4 && letters.bytes().all(|b| b.is_ascii_alphabetic())
}

fn range_shown(program: &str, count: Option<&str>) -> Option<Lines> {
    match program {
        "head" => Some(Lines { from: 1, to: count.map_or(Some(10), |n| n.parse().ok())? }),
        // Ranges counted from the end are placed at the top of the number range, so that they overlap no range from the
        // start.
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

/// Parses `10,20p` and `10p`; of several ranges the first.
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
