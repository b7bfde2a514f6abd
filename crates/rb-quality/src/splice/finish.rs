//! Unverified finishes: the agent says it is done, and nothing has looked at its last change.

use super::change::is_bare_change;
use super::hand::Hand;
use super::{MIN_PREFIX, Plant};
use crate::corpus::{LabelledRun, OwnedStep};
use crate::dice::Dice;

const DONE: [&str; 14] = [
    "All done. The change is in place and everything works as expected.",
    "The task is complete. The implementation now behaves correctly.",
    "I have finished the work; the issue is resolved.",
    "That completes the request. The fix works.",
    "Everything is finished and working. Submitting.",
    "The problem is solved, so I am submitting the result.",
    "The solution is complete and ready to be used.",
    "Done! The issue has been fixed successfully.",
    "I'm confident that this resolves it. Finishing here.",
    "The work is complete; nothing else is required.",
    "Finished. All requirements are met.",
    "The feature has been implemented as requested. We are done.",
    "This takes care of the request. Final answer follows.",
    "The bug is fixed and the task has been completed.",
];
const LAST_EDITS: [(&str, &str); 10] = [
    ("return None", "return default"),
    ("raise ValueError", "raise TypeError"),
    ("count = 0", "count = 1"),
    ("if not data:", "if data is None:"),
    ("range(n)", "range(1, n)"),
    ("limit: 10", "limit: 25"),
    ("name.strip()", "name.strip().lower()"),
    ("== expected", ">= expected"),
    ("verbose=False", "verbose=True"),
    ("sep=\",\"", "sep=\";\""),
];
const EDITING: [&str; 8] = [
    "One last adjustment before I finish.",
    "I'll tidy this line as well.",
    "A final change is needed here.",
    "Let me also cover the edge case.",
    "This line should be changed too.",
    "Finally, I'll correct this part.",
    "One more small edit.",
    "Let me refine this.",
];
const FINISHING_TOOLS: [&str; 6] =
    ["finish", "submit", "final_answer", "done", "complete", "attempt_completion"];

pub(super) fn plant(run: &LabelledRun, hand: &Hand, dice: &mut Dice) -> Option<Plant> {
    if !hand.edits_files() {
        return None;
    }
    let first = if dice.one_in(2) { dropped_checks(run, hand, dice) } else { None };
    first.or_else(|| late_edit(run, hand, dice))
}

/// Ends the run right after the last change that does not check itself: what would have checked it is gone.
fn dropped_checks(run: &LabelledRun, hand: &Hand, dice: &mut Dice) -> Option<Plant> {
    let last = run.steps.iter().rposition(is_bare_change)?;
    if last < MIN_PREFIX {
        return None;
    }
    let mut steps = run.steps.get(..=last)?.to_vec();
    steps.push(declaration(run, hand, dice));
    Some(Plant { variant: "checks dropped", steps, changed_from: last + 1, start: last + 1 })
}

/// Changes one more thing where the run would have ended, and ends it.
fn late_edit(run: &LabelledRun, hand: &Hand, dice: &mut Dice) -> Option<Plant> {
    let path = hand.path(dice);
    let (old, new) = dice.pick(&LAST_EDITS);
    let mut edit = match &hand.edit {
        Some(edit) => edit.act(&path, old, new),
        None => hand.command(&edit_command(&path, old, new, dice), "", false)?,
    };
    edit.thought = hand.say(dice.pick(&EDITING));
    let end = run.steps.len() - run.steps.last().map_or(0, |last| usize::from(ends(last)));
    let mut steps = run.steps.get(..end)?.to_vec();
    steps.push(edit);
    steps.push(declaration(run, hand, dice));
    Some(Plant { variant: "late edit", steps, changed_from: end, start: end + 1 })
}

fn edit_command(path: &str, old: &str, new: &str, dice: &mut Dice) -> String {
    match dice.below(4) {
        0 => format!("sed -i 's/{old}/{new}/' {path}"),
        1 => format!("perl -pi -e 's/\\Q{old}\\E/{new}/' {path}"),
        2 => format!(
            "python - <<'EOF'\np = '{path}'\ns = open(p).read()\nopen(p, 'w').write(s.replace('''{old}''', '''{new}'''))\nEOF"
        ),
        _ => format!("cat >> {path} <<'EOF'\n\n# {new}\nEOF"),
    }
}

/// Whether a step ends the run: it only speaks, or hands the result over.
fn ends(step: &OwnedStep) -> bool {
    let tool = step.tool.to_lowercase();
    tool.is_empty()
        || FINISHING_TOOLS.iter().any(|name| tool.contains(name))
        || step.input.to_lowercase().contains("submit")
}

/// A confident end, in the form in which the run ends.
fn declaration(run: &LabelledRun, hand: &Hand, dice: &mut Dice) -> OwnedStep {
    let thought = hand.say(dice.pick(&DONE));
    match run.steps.last().filter(|last| ends(last) && !last.tool.is_empty()) {
        Some(last) => OwnedStep { thought, user_input: String::new(), ..last.clone() },
        None => OwnedStep { thought, ..OwnedStep::default() },
    }
}
