//! The tools and the style of a run's agent, which injected steps imitate.

use serde_json::{Map, Value};

use super::edits::is_scratch;
use rb_quality::corpus::{LabelledRun, OwnedStep};
use rb_quality::rng::Rng;

/// Tools, files and names of one run.
pub(super) struct AgentStyle {
    /// Form of a shell command.
    shell: Option<Form>,
    /// Form of a Python call.
    code: Option<Form>,
    /// Form of a call of a text replacement tool.
    pub(super) edit: Option<EditForm>,
    /// Files in its calls.
    paths: Vec<String>,
    /// Names in the task.
    names: Vec<String>,
    /// Prefix of its thoughts, such as `THOUGHT: `.
    mark: String,
    /// Command results contain a return code in tags.
    tagged: bool,
}

/// Form of a call with a single text.
#[derive(Clone)]
struct Form {
    tool: String,
    /// Key of the text in a JSON argument; without it the text is the whole argument.
    key: Option<String>,
    input_is_text: bool,
}

/// Form of a call that replaces a text in a file.
#[derive(Clone)]
pub(super) struct EditForm {
    tool: String,
    object: Map<String, Value>,
    path_key: &'static str,
    old_key: &'static str,
    new_key: &'static str,
    input_is_text: bool,
}

const TEXT_KEYS: [&str; 6] = ["command", "commands", "cmd", "script", "code", "input"];
const PATH_KEYS: [&str; 5] = ["file_path", "path", "filename", "target_file", "file"];
const OLD_KEYS: [&str; 5] = ["old_string", "old_str", "old_text", "search", "old"];
const NEW_KEYS: [&str; 5] = ["new_string", "new_str", "new_text", "replace", "new"];
const SHELLS: [&str; 8] =
    ["bash", "sh", "shell", "terminal", "cmd", "exec", "run_command", "console"];
const CODES: [&str; 5] = ["python", "ipython", "code", "jupyter", "python_interpreter"];
const EXTENSIONS: [&str; 24] = [
    "py", "rs", "js", "ts", "tsx", "go", "java", "c", "h", "cpp", "rb", "php", "sh", "md", "rst",
    "txt", "json", "toml", "yaml", "yml", "cfg", "ini", "csv", "html",
];
const SPARE_PATHS: [&str; 8] = [
    "src/app.py",
    "lib/parser.js",
    "config/settings.toml",
    "core/handlers.go",
    "src/main.rs",
    "utils/format.py",
    "server/routes.ts",
    "data/report.csv",
];

impl AgentStyle {
    pub(super) fn of(run: &LabelledRun) -> Self {
        let named = |step: &&OwnedStep, names: &[&str]| {
            let tool = step.tool.to_lowercase();
            names.iter().any(|name| tool == *name || (name.len() > 3 && tool.contains(name)))
        };
        let last = |names: &[&str]| run.steps.iter().rev().find(|step| named(step, names));
        let acting = run.steps.iter().filter(|step| !step.tool.is_empty());
        let mut paths: Vec<String> = acting.flat_map(|step| paths_in(&step.input)).collect();
        paths.retain(|path| !is_scratch(path));
        paths.sort_unstable();
        paths.dedup();
        let tagged = run.steps.iter().filter(|s| s.observation.starts_with("<returncode>")).count();
        Self {
            shell: last(&SHELLS).and_then(Form::of),
            code: last(&CODES).and_then(Form::of),
            edit: run.steps.iter().rev().find_map(EditForm::of),
            paths,
            names: names_in(&run.task.text),
            mark: mark_of(run),
            tagged: tagged * 2 > run.steps.len(),
        }
    }

    /// A file of the run, or a plausible one.
    pub(super) fn path(&self, rng: &mut Rng) -> String {
        match self.paths.get(rng.below(self.paths.len())) {
            Some(path) => path.clone(),
            None => rng.pick(&SPARE_PATHS).to_owned(),
        }
    }

    /// A name from the task, or a file.
    pub(super) fn name(&self, rng: &mut Rng) -> String {
        match self.names.get(rng.below(self.names.len())) {
            Some(name) => name.clone(),
            None => self.path(rng),
        }
    }

    /// A thought with the agent's prefix.
    pub(super) fn thought(&self, words: &str) -> String {
        format!("{}{words}", self.mark)
    }

    /// Returns true if it can run commands, in a shell or from Python.
    pub(super) fn runs_commands(&self) -> bool {
        self.shell.is_some() || self.code.is_some()
    }

    /// Returns true if it can edit files.
    pub(super) fn edits_files(&self) -> bool {
        self.edit.is_some() || self.shell.is_some()
    }

    /// A step that runs a shell command; `None` if the agent has no tool for it.
    pub(super) fn command(&self, command: &str, output: &str, failed: bool) -> Option<OwnedStep> {
        let mut step = match (&self.shell, &self.code) {
            (Some(shell), _) => shell.act(command),
            (None, Some(code)) => code.act(&format!(
                "import subprocess\nprint(subprocess.getoutput({}))",
                Value::from(command)
            )),
            (None, None) => return None,
        };
        step.observation = if self.tagged {
            let code = u8::from(failed);
            let end = if output.is_empty() { "" } else { "\n" };
            format!("<returncode>{code}</returncode>\n<output>\n{output}{end}</output>")
        } else {
            output.to_owned()
        };
        Some(step)
    }
}

impl Form {
    fn of(step: &OwnedStep) -> Option<Self> {
        let form = |key| Self { tool: step.tool.clone(), key, input_is_text: step.input_is_text };
        let Some(object) = object(&step.input) else {
            return (!step.input.is_empty() && step.input_is_text).then(|| form(None));
        };
        let is_text = |key: &&str| object.get(*key).is_some_and(Value::is_string);
        TEXT_KEYS.iter().find(|key| is_text(key)).map(|key| form(Some((*key).to_owned())))
    }

    /// A step that calls the tool with this text.
    fn act(&self, text: &str) -> OwnedStep {
        let input = match &self.key {
            None => text.to_owned(),
            Some(key) => {
                Value::Object(Map::from_iter([(key.clone(), Value::from(text))])).to_string()
            }
        };
        OwnedStep {
            tool: self.tool.clone(),
            input,
            input_is_text: self.input_is_text,
            ..OwnedStep::default()
        }
    }
}

impl EditForm {
    fn of(step: &OwnedStep) -> Option<Self> {
        let object = object(&step.input)?;
        let key = |keys: &'static [&'static str]| {
            keys.iter().find(|key| object.get(**key).is_some_and(Value::is_string)).copied()
        };
        let (path_key, old_key, new_key) = (key(&PATH_KEYS)?, key(&OLD_KEYS)?, key(&NEW_KEYS)?);
        Some(Self {
            tool: step.tool.clone(),
            input_is_text: step.input_is_text,
            object,
            path_key,
            old_key,
            new_key,
        })
    }

    /// A step that replaces `old` by `new`.
    pub(super) fn act(&self, path: &str, old: &str, new: &str) -> OwnedStep {
        let mut object = self.object.clone();
        for (key, value) in [(self.path_key, path), (self.old_key, old), (self.new_key, new)] {
            object.insert(key.to_owned(), Value::from(value));
        }
        OwnedStep {
            tool: self.tool.clone(),
            input: Value::Object(object).to_string(),
            input_is_text: self.input_is_text,
            observation: format!("The file {path} has been updated."),
            ..OwnedStep::default()
        }
    }
}

/// Parses an argument that is a JSON object.
pub(super) fn object(input: &str) -> Option<Map<String, Value>> {
    if !input.trim_start().starts_with('{') {
        return None;
    }
    serde_json::from_str(input).ok()
}

/// The strings of a JSON argument, or the whole argument.
pub(super) fn words_of(input: &str) -> String {
    let Some(object) = object(input) else { return input.to_owned() };
    let texts = object.values().filter_map(Value::as_str);
    texts.collect::<Vec<_>>().join("\n")
}

/// The word and colon at the start of most thoughts.
fn mark_of(run: &LabelledRun) -> String {
    let marks = run.steps.iter().filter_map(|step| {
        let (mark, _) = step.thought.split_once(": ")?;
        (mark.len() < 12 && mark.chars().all(|c| c.is_ascii_alphabetic())).then_some(mark)
    });
    let marks: Vec<&str> = marks.collect();
    match marks.first() {
        Some(mark) if marks.len() * 2 > run.steps.len() => format!("{mark}: "),
        _ => String::new(),
    }
}

fn paths_in(input: &str) -> Vec<String> {
    let words = words_of(input);
    let parts = words.split(|c: char| !(c.is_ascii_alphanumeric() || "_-./".contains(c)));
    let is_path = |part: &&str| {
        let known = |(stem, extension): (&str, &str)| {
            EXTENSIONS.contains(&extension) && stem.chars().any(|c| c.is_ascii_alphabetic())
        };
        part.len() < 80 && !part.starts_with('-') && part.rsplit_once('.').is_some_and(known)
    };
    parts.filter(is_path).take(8).map(str::to_owned).collect()
}

/// Words of the task with an inner capital letter, a digit or an underscore.
fn names_in(task: &str) -> Vec<String> {
    let trim =
        |word: &str| word.trim_matches(|c: char| !(c.is_alphanumeric() || c == '_')).to_owned();
    let words: Vec<String> = task.split_whitespace().take(300).map(trim).collect();
    let named = |word: &&String| {
        let plain = word.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
        let marked = word.chars().skip(1).any(|c| c.is_uppercase() || c.is_numeric() || c == '_');
        plain && (4..40).contains(&word.len()) && marked
    };
    words.iter().filter(named).take(30).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(tool: &str, input: &str) -> LabelledRun {
        let step = OwnedStep {
            tool: tool.into(),
            input: input.into(),
            input_is_text: true,
            ..OwnedStep::default()
        };
        LabelledRun { steps: vec![step], ..LabelledRun::default() }
    }

    #[test]
    fn an_injected_command_has_the_form_of_the_run() {
        let plain = AgentStyle::of(&run("bash", "cat src/a.py | head"));
        assert_eq!(plain.command("ls", "a", false).map(|step| step.input).as_deref(), Some("ls"));
        assert_eq!(plain.paths, ["src/a.py"]);
        let json = AgentStyle::of(&run("execute_bash", r#"{"command": "ls"}"#));
        let step = json.command("echo \"a\"", "a", false).expect("a shell");
        assert_eq!(
            (step.tool.as_str(), step.input.as_str()),
            ("execute_bash", r#"{"command":"echo \"a\""}"#)
        );
        assert!(AgentStyle::of(&run("search", "Paris")).command("ls", "", false).is_none());
    }

    #[test]
    fn an_edit_keeps_the_other_arguments() {
        let input = r#"{"command":"str_replace","path":"/a.py","old_str":"x","new_str":"y"}"#;
        let edit = AgentStyle::of(&run("editor", input)).edit.expect("an edit tool");
        assert_eq!(
            edit.act("/b.py", "1", "2").input,
            r#"{"command":"str_replace","new_str":"2","old_str":"1","path":"/b.py"}"#
        );
    }

    #[test]
    fn names_are_marked_words() {
        assert_eq!(
            names_in("Fix the CompoundModel in step_2, please. Then RUN it."),
            ["CompoundModel", "step_2"]
        );
    }
}
