//! Unverified finishes: the agent declares the task done after an unchecked edit.

use super::agent_style::AgentStyle;
use super::edits::is_bare_change;
use super::{Fault, MIN_PREFIX};
use rb_quality::corpus::{LabelledRun, OwnedStep};
use rb_quality::rng::Rng;

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

pub(super) fn inject(run: &LabelledRun, style: &AgentStyle, rng: &mut Rng) -> Option<Fault> {
    if !style.edits_files() {
        return None;
    }
    let first = if rng.below(2) == 0 { dropped_checks(run, style, rng) } else { None };
    first.or_else(|| late_edit(run, style, rng))
}

/// Ends the run after its last unchecked edit and drops the steps that check it.
fn dropped_checks(run: &LabelledRun, style: &AgentStyle, rng: &mut Rng) -> Option<Fault> {
    let last = run.steps.iter().rposition(is_bare_change)?;
    if last < MIN_PREFIX {
        return None;
    }
    let mut steps = run.steps.get(..=last)?.to_vec();
    steps.push(declaration(run, style, rng));
    Some(Fault { variant: "checks dropped", steps, changed_from: last + 1, start: last + 1 })
}

/// Adds an edit before the end of the run.
fn late_edit(run: &LabelledRun, style: &AgentStyle, rng: &mut Rng) -> Option<Fault> {
    let path = style.path(rng);
    let (old, new) = rng.pick(&LAST_EDITS);
    let mut edit = match &style.edit {
        Some(edit) => edit.act(&path, old, new),
        None => style.command(&edit_command(&path, old, new, rng), "", false)?,
    };
    edit.thought = style.thought(rng.pick(&EDITING));
    let end = run.steps.len() - run.steps.last().map_or(0, |last| usize::from(ends(last)));
    let mut steps = run.steps.get(..end)?.to_vec();
    steps.push(edit);
    steps.push(declaration(run, style, rng));
    Some(Fault { variant: "late edit", steps, changed_from: end, start: end + 1 })
}

fn edit_command(path: &str, old: &str, new: &str, rng: &mut Rng) -> String {
    match rng.below(4) {
        0 => format!("sed -i 's/{old}/{new}/' {path}"),
        1 => format!("perl -pi -e 's/\\Q{old}\\E/{new}/' {path}"),
        2 => format!(
            "python - <<'EOF'\np = '{path}'\ns = open(p).read()\nopen(p, 'w').write(s.replace('''{old}''', '''{new}'''))\nEOF"
        ),
        _ => format!("cat >> {path} <<'EOF'\n\n# {new}\nEOF"),
    }
}

/// Returns true if a step ends the run: a message, or a call that submits the result.
fn ends(step: &OwnedStep) -> bool {
    let tool = step.tool.to_lowercase();
    tool.is_empty()
        || FINISHING_TOOLS.iter().any(|name| tool.contains(name))
        || step.input.to_lowercase().contains("submit")
}

/// A final step in the form of the run's last step.
fn declaration(run: &LabelledRun, style: &AgentStyle, rng: &mut Rng) -> OwnedStep {
    let thought = style.thought(rng.pick(&DONE));
    match run.steps.last().filter(|last| ends(last) && !last.tool.is_empty()) {
        Some(last) => OwnedStep { thought, user_input: String::new(), ..last.clone() },
        None => OwnedStep { thought, ..OwnedStep::default() },
    }
}
