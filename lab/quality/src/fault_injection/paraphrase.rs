//! Rewords steps by rules, as a model does that repeats itself.

use serde_json::Value;

use super::agent_style::object;
use rb_quality::corpus::OwnedStep;
use rb_quality::rng::Rng;

/// Rows of interchangeable words.
const SYNONYMS: [&[&str]; 40] = [
    &["find", "locate", "discover"],
    &["search", "query"],
    &["check", "verify", "confirm"],
    &["see", "view", "look at"],
    &["file", "document"],
    &["files", "documents"],
    &["list", "enumerate", "show"],
    &["show", "display", "print"],
    &["error", "failure", "problem"],
    &["errors", "failures", "problems"],
    &["bug", "defect", "fault"],
    &["fix", "repair"],
    &["run", "execute", "launch"],
    &["running", "executing"],
    &["test", "check"],
    &["tests", "checks"],
    &["code", "source"],
    &["function", "routine", "method"],
    &["directory", "folder"],
    &["create", "make", "write"],
    &["need", "have", "want"],
    &["get", "obtain", "fetch", "retrieve"],
    &["information", "details", "data"],
    &["number", "count", "amount"],
    &["quickly", "briefly"],
    &["now", "next", "at this point"],
    &["also", "additionally"],
    &["because", "since"],
    &["use", "apply", "employ"],
    &["using", "by means of"],
    &["change", "modify", "alter"],
    &["output", "result"],
    &["start", "begin"],
    &["understand", "grasp", "work out"],
    &["provide", "give", "supply"],
    &["help", "assist"],
    &["large", "big"],
    &["current", "present"],
    &["correct", "accurate"],
    &["examine", "inspect", "study"],
];

const OPENINGS: [&str; 12] = [
    "Let me",
    "I will",
    "I'll",
    "I need to",
    "I should",
    "Now I will",
    "Next I'll",
    "I am going to",
    "I want to",
    "Time to",
    "I have to",
    "Let's",
];
const ASIDES: [&str; 10] = [
    "To be thorough, ",
    "Once more: ",
    "OK. ",
    "Alright, ",
    "So, ",
    "Right. ",
    "Well, ",
    "As planned, ",
    "To make progress, ",
    "Hmm, ",
];
const QUERY_TAILS: [&str; 8] = [
    "",
    " details",
    " information",
    " overview",
    " facts",
    " background",
    " summary",
    " explained",
];

/// Rewords a step and keeps its result.
pub(super) fn step(step: &OwnedStep, rng: &mut Rng) -> OwnedStep {
    OwnedStep {
        thought: thought(&step.thought, rng),
        input: input(step, rng),
        user_input: String::new(),
        ..step.clone()
    }
}

/// Rewords a thought: another opening, synonyms, sometimes an aside.
pub(super) fn thought(text: &str, rng: &mut Rng) -> String {
    if text.trim().is_empty() {
        return String::new();
    }
    let (mark, body) = match text.split_once(": ") {
        Some((mark, body)) if mark.len() < 12 && mark.chars().all(char::is_alphabetic) => {
            (format!("{mark}: "), body)
        }
        _ => (String::new(), text),
    };
    let opened = OPENINGS.iter().find_map(|opening| {
        let rest = body.strip_prefix(opening)?;
        Some(format!("{}{rest}", rng.pick(&OPENINGS)))
    });
    let body = synonyms(opened.as_deref().unwrap_or(body), rng);
    let aside = if rng.below(3) == 0 { rng.pick(&ASIDES) } else { "" };
    format!("{mark}{aside}{}", swapped(&body, rng))
}

/// Swaps the halves of the first sentence around a conjunction.
fn swapped(text: &str, rng: &mut Rng) -> String {
    if rng.below(2) == 0 {
        return text.to_owned();
    }
    let (first, rest) = text.split_once(". ").unwrap_or((text, ""));
    for joint in [" to ", " so that ", " because ", " since "] {
        if let Some((left, right)) = first.trim_end_matches('.').split_once(joint) {
            let joint = joint.trim();
            let joint = joint.get(..1).unwrap_or_default().to_uppercase()
                + joint.get(1..).unwrap_or_default();
            return format!("{joint} {right}, {left}. {rest}").trim_end().to_owned();
        }
    }
    text.to_owned()
}

/// Replaces every second word that has synonyms.
pub(super) fn synonyms(text: &str, rng: &mut Rng) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let word = piece.trim_end_matches(|c: char| !c.is_alphanumeric());
        let row = SYNONYMS.iter().find(|row| row.contains(&word.to_lowercase().as_str()));
        match row {
            Some(row) if (rng.below(2) == 0) => {
                let other = rng.pick(row);
                out.push_str(&match_case(word, other));
                out.push_str(piece.get(word.len()..).unwrap_or_default());
            }
            _ => out.push_str(piece),
        }
    }
    out
}

fn match_case(model: &str, word: &str) -> String {
    if model.chars().next().is_some_and(char::is_uppercase) {
        let mut chars = word.chars();
        chars.next().map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
    } else {
        word.to_owned()
    }
}

/// Rewords the argument of a call.
fn input(step: &OwnedStep, rng: &mut Rng) -> String {
    let tool = step.tool.to_lowercase();
    let shell = ["bash", "shell", "sh", "terminal", "command", "exec"];
    let is_shell = shell.iter().any(|name| tool.contains(name));
    if let Some(mut fields) = object(&step.input) {
        for (key, value) in &mut fields {
            let Some(text) = value.as_str() else { continue };
            let key = key.to_lowercase();
            if is_shell || key.contains("command") {
                *value = Value::from(command(text, rng));
            } else if ["query", "search", "question", "thought", "text", "prompt", "keyword"]
                .iter()
                .any(|name| key.contains(name))
            {
                *value = Value::from(query(text, rng));
            }
        }
        let object = Value::Object(fields);
        return if rng.below(2) == 0 { object.to_string() } else { format!("{object:#}") };
    }
    let looks_like_code = step.input.contains('\n') || step.input.contains('(');
    if is_shell || looks_like_code { command(&step.input, rng) } else { query(&step.input, rng) }
}

/// Rewords a search query.
fn query(text: &str, rng: &mut Rng) -> String {
    let text = synonyms(text, rng);
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let text = match rng.below(5) {
        0 if words.len() > 1 => {
            words.rotate_left(1);
            words.join(" ")
        }
        1 => text.to_lowercase(),
        2 => format!("\"{text}\""),
        3 => format!("the {text}"),
        _ => text,
    };
    format!("{text}{}", rng.pick(&QUERY_TAILS))
}

/// Equivalent commands: (before, after).
const SAME_COMMAND: [(&str, &str); 16] = [
    ("grep -rn ", "grep -nr "),
    ("grep -r ", "grep -R "),
    ("grep -n ", "grep --line-number "),
    ("ls -la", "ls -al"),
    ("ls -R", "ls --recursive"),
    ("head -n ", "head --lines="),
    ("tail -n ", "tail --lines="),
    ("python3 ", "python "),
    ("python ", "python3 "),
    ("cat ", "cat -- "),
    ("sed -n ", "sed --quiet "),
    (" && ", "; "),
    ("find . ", "find ./ "),
    ("pytest ", "python -m pytest "),
    ("'", "\""),
    (" | ", " 2>/dev/null | "),
];
const COMMAND_TAILS: [&str; 6] = ["", " 2>&1", " | cat", "  ", " ; true", " # again"];

/// Rewrites a command with other flags, quotes or spaces.
fn command(text: &str, rng: &mut Rng) -> String {
    if text.contains("<<") || text.matches('\n').count() > 3 {
        // A suffix would change a here-document; blank lines do not.
        let blank_lines = "\n".repeat(1 + rng.below(3));
        return format!("# attempt {}\n{text}{blank_lines}", 1 + rng.below(9));
    }
    let mut text = text.to_owned();
    for (before, after) in SAME_COMMAND {
        let quotes_inside = before == "'" && text.contains(['"', '$', '`']);
        if text.contains(before) && !quotes_inside && rng.below(2) == 0 {
            text = text.replace(before, after);
            break;
        }
    }
    let before = rng.pick(&["", "cd . && ", " ", ""]);
    format!("{before}{text}{}", rng.pick(&COMMAND_TAILS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewording_varies_but_is_fixed_by_the_seed() {
        let source = OwnedStep {
            thought: "THOUGHT: Let me check the file to find the error.".into(),
            tool: "bash".into(),
            input: "grep -rn 'x' src | head -n 5".into(),
            input_is_text: true,
            observation: "same".into(),
            ..OwnedStep::default()
        };
        let reworded = |seed| step(&source, &mut Rng::for_purpose(seed, &[]));
        assert_eq!(reworded(1), reworded(1));
        let mut all: Vec<_> =
            (0..20).map(|seed| (reworded(seed).thought, reworded(seed).input)).collect();
        assert!((0..20).all(|seed| reworded(seed).observation == "same"));
        assert!(all.iter().all(|(thought, _)| thought.starts_with("THOUGHT: ")), "{all:?}");
        all.sort();
        all.dedup();
        assert!(all.len() > 10, "{all:?}");
    }

    #[test]
    fn a_structured_argument_stays_structured() {
        let source = OwnedStep {
            tool: "search_flights".into(),
            input: r#"{"query":"find flights","limit":3}"#.into(),
            ..OwnedStep::default()
        };
        for seed in 0..20 {
            let reworded = step(&source, &mut Rng::for_purpose(seed, &[])).input;
            let fields = object(&reworded).expect("an object");
            assert_eq!(fields.get("limit"), Some(&Value::from(3)), "{reworded}");
        }
    }
}
