//! `edit_revert`: edits revert each other, or fail and are repeated.
//!
//! **Rule.** Of the last three edits, the latest has more trigrams in common with the oldest than with the one in
//! between, by more than `revert_margin`: 1. Or: a file is edited, an error follows, and the file is edited again; the
//! file with most such cycles scores `cycles / cycles_full`. The higher score counts.
//!
//! **Fires at** 0.6: a revert, or the second cycle on one file.
//!
//! **State.** The trigrams of two edits, and the cycles of at most `FILES_MAX` files; beyond that the files counted
//! longest ago are dropped. Cost per step: constant, for an edit its length.
//!
//! **Blind spots.** An edit is recognised by the name of the tool, its file by the first path in the argument. A
//! structured argument is not read, and edits inside shell commands are not recognised.

use std::collections::VecDeque;

use super::trigrams::Trigrams;
use super::{Monitor, MonitorSpec, SettingsError, Signal, Suite, at_least, in_range};
use crate::analysis::features::StepFeatures;
use crate::analysis::text::{Label, is_word};
use crate::evidence::Evidence;
use crate::step::StepIndex;

pub(super) static SPEC: MonitorSpec = MonitorSpec {
    id: "edit_revert",
    suite: Suite::Heuristic,
    summary: "Edits undo each other, or fail and are tried again.",
    fire_at: super::DEFAULT_FIRE_THRESHOLD,
    failure_type: "edit_thrash",
    build: |settings| {
        Box::new(EditRevert { settings: settings.edit_revert, ..EditRevert::default() })
    },
    advice,
};

/// Editing tools, in lower case.
#[rustfmt::skip]
const EDIT_TOOLS: [&str; 8] = [
    "edit", "write", "str_replace", "str_replace_editor", "patch", "apply_patch", "create_file", "overwrite",
];

/// Maximum number of files with cycles.
const FILES_MAX: usize = 512;

/// User settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EditRevertSettings {
    /// Difference in overlap from which the latest edit is a revert.
    pub revert_margin: f64,
    /// Number of cycles on one file that scores 1.
    pub cycles_full: u32,
}

impl Default for EditRevertSettings {
    fn default() -> Self {
        Self { revert_margin: 0.10, cycles_full: 2 }
    }
}

impl EditRevertSettings {
    pub(super) fn check(self) -> Result<(), SettingsError> {
        in_range("edit_revert.revert_margin", self.revert_margin, 0.0, 1.0)?;
        at_least("edit_revert.cycles_full", self.cycles_full, 1)
    }
}

#[derive(Default)]
struct EditRevert {
    settings: EditRevertSettings,
    /// The last two edits, older first.
    edits: VecDeque<Edit>,
    revert: Option<[StepIndex; 3]>,
    /// Files with cycles, the one counted longest ago first.
    cycles: VecDeque<Cycles>,
    /// The file with most cycles, kept even if it is dropped from `cycles`.
    worst: Option<Cycles>,
}

struct Edit {
    at: StepIndex,
    /// `None` if the argument contains no path.
    file: Option<Label>,
    trigrams: Trigrams,
    failed: bool,
}

#[derive(Debug, Clone)]
struct Cycles {
    file: Label,
    count: u32,
    last: [StepIndex; 2],
}

impl Monitor for EditRevert {
    fn observe(&mut self, at: StepIndex, features: &StepFeatures<'_>) -> Signal {
        if let Some(action) = features.step.action
            && is_edit(action.tool)
        {
            self.edit(at, action.input.as_plain_text());
        }
        if features.failed()
            && let Some(edit) = self.edits.back_mut()
        {
            edit.failed = true;
        }
        self.signal()
    }

    fn heap_bytes(&self) -> usize {
        let label = |file: &Label| size_of::<Label>() + file.heap_bytes();
        let edits: usize = self.edits.iter().map(|edit| edit.trigrams.heap_bytes()).sum();
        let cycles: usize = self.cycles.iter().map(|cycles| label(&cycles.file)).sum();
        edits + cycles + self.cycles.capacity() * size_of::<Cycles>()
    }
}

impl EditRevert {
    fn edit(&mut self, at: StepIndex, input: &str) {
        let file = first_path(input).map(Label::new);
        if let Some(before) = self.edits.back()
            && before.failed
            && before.file == file
            && let Some(file) = file.clone()
        {
            let last = [before.at, at];
            self.count_cycle(file, last);
        }
        let trigrams = Trigrams::of(input);
        self.revert = None;
        if let [older, before] = self.edits.make_contiguous() {
            let margin = self.settings.revert_margin;
            if trigrams.overlap(&older.trigrams) > trigrams.overlap(&before.trigrams) + margin {
                self.revert = Some([older.at, before.at, at]);
            }
            self.edits.pop_front();
        }
        self.edits.push_back(Edit { at, file, trigrams, failed: false });
    }

    fn count_cycle(&mut self, file: Label, last: [StepIndex; 2]) {
        let known = self.cycles.iter().position(|cycles| cycles.file == file);
        let before = known.and_then(|at| self.cycles.remove(at)).map_or(0, |cycles| cycles.count);
        let cycles = Cycles { file, count: before.saturating_add(1), last };
        if self.worst.as_ref().is_none_or(|worst| cycles.count >= worst.count) {
            self.worst = Some(cycles.clone());
        }
        if self.cycles.len() == FILES_MAX {
            self.cycles.pop_front();
        }
        self.cycles.push_back(cycles);
    }

    fn signal(&self) -> Signal {
        if let Some(steps) = self.revert {
            return Signal::new(1.0, || Evidence::new("revert", 1).at(steps));
        }
        let Some(worst) = &self.worst else { return Signal::none() };
        let full = self.settings.cycles_full;
        Signal::new((f64::from(worst.count) / f64::from(full)).min(1.0), || {
            let file = worst.file.shown();
            Evidence::new("edit_fail_edit", worst.count).of(full).at(worst.last).path(file)
        })
    }
}

fn is_edit(tool: &str) -> bool {
    EDIT_TOOLS.iter().any(|edit| edit.eq_ignore_ascii_case(tool)) || {
        // A few letters beyond ASCII become ASCII in lower case.
        !tool.is_ascii() && EDIT_TOOLS.contains(&tool.to_lowercase().as_str())
    }
}

/// Returns the first path: a run of word characters, dots, slashes, backslashes and hyphens that ends in a dot and one
/// to five ASCII letters.
fn first_path(input: &str) -> Option<&str> {
    let in_path = |c: char| is_word(c) || matches!(c, '.' | '/' | '\\' | '-');
    let mut rest = input;
    loop {
        rest = &rest[rest.find(in_path)?..];
        let run = &rest[..rest.find(|c| !in_path(c)).unwrap_or(rest.len())];
        let ending = run.bytes().enumerate().skip(1).rev().find(|(at, byte)| {
            *byte == b'.' && run.as_bytes().get(at + 1).is_some_and(u8::is_ascii_alphabetic)
        });
        if let Some((dot, _)) = ending {
            let letters =
                run.bytes().skip(dot + 1).take(5).take_while(u8::is_ascii_alphabetic).count();
            return Some(&run[..=dot + letters]);
        }
        rest = &rest[run.len()..];
    }
}

fn advice(seen: &Evidence) -> String {
    match (seen.kind, seen.path.as_deref()) {
        ("edit_fail_edit", Some(file)) => format!(
            "`{file}` was edited, an error followed, and it was edited again, {} times (most recently {}). \
             The cause may lie elsewhere. It may help to read the error and the current state of the file, \
             say what the next edit would have to change, and check that before editing.",
            seen.count,
            seen.steps_in_words(),
        ),
        _ => format!(
            "the newest of the last three edits ({}) is closer to the oldest than to the one between, so a \
             change seems to have been undone. It may help to look at the difference from the start, decide \
             which version is wanted and why, and go on from there.",
            seen.steps_in_words(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_util::check;

    #[test]
    fn a_revert_fires() {
        check(
            "edit_revert",
            "
            edit a.py retries = 3, timeout = 10      => ok   | 0.00
            edit a.py backoff = exponential(base)    => ok   | 0.00
            edit a.py retries = 3, timeout = 10      => ok   | 1.00 FIRED
            read a.py                                => ok   | 1.00 FIRED
            edit a.py def connect(self, host): pass  => ok   | 0.00
            ",
        );
    }

    #[test]
    fn failing_twice_on_one_file_fires() {
        check(
            "edit_revert",
            "
            edit a.py one two three    => error: no match   | 0.00
            edit a.py four five six    => error: no match   | 0.50
            edit b.py other file       => ok                | 0.50
            test                       => 1 failed          | 0.50
            edit b.py seven eight      => ok                | 0.50
            edit a.py nine ten         => failed            | 0.50
            edit a.py eleven twelve    => ok                | 1.00 FIRED
            ",
        );
    }

    #[test]
    fn steady_work_on_several_files_is_silent() {
        check(
            "edit_revert",
            "
            edit a.py one two three    => ok   | 0.00
            edit a.py one two three    => ok   | 0.00
            edit b.py something else   => ok   | 0.00
            edit c.py more of it       => ok   | 0.00
            ",
        );
    }

    #[test]
    fn the_first_path_is_found() {
        let cases = [
            ("", None),
            ("no file here", None),
            (".py", None),
            ("x .py a.py", Some("a.py")),
            ("see src/lib.rs:12", Some("src/lib.rs")),
            ("v1.2 then a.toml", Some("a.toml")),
            ("a.tar.gz", Some("a.tar.gz")),
            ("a.markdown", Some("a.markd")),
            ("C:\\x\\y.txt", Some("\\x\\y.txt")),
            ("{\"path\": \"é/ü.rs\"}", Some("é/ü.rs")),
            ("a.b9.", Some("a.b")),
            ("...x", Some("...x")),
        ];
        for (input, path) in cases {
            assert_eq!(first_path(input), path, "{input:?}");
        }
    }

    #[test]
    fn the_worst_file_is_kept_when_others_are_dropped() {
        let mut monitor = EditRevert::default();
        for n in 0..3_000_u32 {
            let file = format!("f{}.py", n / 2);
            monitor.edit(StepIndex(n), &file);
            if let Some(edit) = monitor.edits.back_mut() {
                edit.failed = true;
            }
        }
        assert!(monitor.cycles.len() <= FILES_MAX);
        assert!(monitor.heap_bytes() <= super::super::HEAP_BYTES_MAX);
        assert!((monitor.signal().score - 0.5).abs() < f64::EPSILON);
    }
}
