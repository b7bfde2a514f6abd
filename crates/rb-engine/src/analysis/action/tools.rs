//! Which tool does what: a table of known names, and for the rest the words of the name.
//!
//! A host may overrule both: see [`ToolPolicies`].

use std::collections::BTreeMap;

use super::Kind;

/// What the host knows about a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolPolicy {
    /// The kind of every call of this tool, instead of what we would make of it.
    pub kind: Option<Kind>,
    /// Calling it again and again is how it is used.
    pub poll: bool,
    /// The same call may rightly answer differently each time (a browser, a session).
    pub stateful: bool,
}

/// What the host knows about its tools, by their exact names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolPolicies {
    by_name: BTreeMap<String, ToolPolicy>,
}

impl ToolPolicies {
    /// The same policies with one more.
    #[must_use]
    pub fn with(mut self, tool: &str, policy: ToolPolicy) -> Self {
        self.by_name.insert(tool.to_owned(), policy);
        self
    }

    /// What is known about a tool; nothing is the default.
    pub fn of(&self, tool: &str) -> ToolPolicy {
        self.by_name.get(tool).copied().unwrap_or_default()
    }
}

/// How the argument of a tool is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolKind {
    /// A command line.
    Shell,
    /// A piece of code.
    Code,
    /// An editor whose `command` says what it does.
    Editor,
    /// A patch.
    Patch,
    /// A statement for a database.
    Sql,
    /// Names and values.
    Plain(Kind),
}

use Kind::{Change, Edit, Finish, Message, Poll, Read, Run, Search, Test, Think};
use ToolKind::{Code, Editor, Patch, Plain, Shell, Sql};

/// Known names in lower case, `-` written `_`, sorted.
const KNOWN: &[(&str, ToolKind)] = &[
    ("apply_diff", Plain(Edit)),
    ("apply_patch", Patch),
    ("ask_followup_question", Plain(Message)),
    ("ask_user", Plain(Message)),
    ("askuserquestion", Plain(Message)),
    ("attempt_completion", Plain(Finish)),
    ("await_terminal", Plain(Poll)),
    ("bash", Shell),
    ("bash_20250124", Shell),
    ("bashoutput", Plain(Poll)),
    ("browse", Plain(Read)),
    ("browse_interactive", Plain(Run)),
    ("browser", Plain(Run)),
    ("calculate", Plain(Run)),
    ("calculator", Plain(Run)),
    ("click", Plain(Run)),
    ("close_terminal", Plain(Run)),
    ("cmd", Shell),
    ("code", Code),
    ("code_execution", Code),
    ("code_interpreter", Code),
    ("codebase_search", Plain(Search)),
    ("complete_task", Plain(Finish)),
    ("computer", Plain(Run)),
    ("container.exec", Shell),
    ("create", Plain(Edit)),
    ("create_file", Plain(Edit)),
    ("delete_file", Plain(Edit)),
    ("developer__shell", Shell),
    ("developer__text_editor", Editor),
    ("done", Plain(Finish)),
    ("duckduckgo_search", Plain(Search)),
    ("edit", Plain(Edit)),
    ("edit_file", Plain(Edit)),
    ("edit_notebook", Plain(Edit)),
    ("editor", Editor),
    ("evaluate", Plain(Run)),
    ("exec", Shell),
    ("exec_command", Shell),
    ("execute", Shell),
    ("execute_bash", Shell),
    ("execute_command", Shell),
    ("execute_ipython_cell", Code),
    ("execute_python", Code),
    ("execute_sql", Sql),
    ("exit", Plain(Finish)),
    ("exitplanmode", Plain(Think)),
    ("fetch", Plain(Read)),
    ("file_editor", Editor),
    ("file_search", Plain(Search)),
    ("fileeditortool", Editor),
    ("final_answer", Plain(Finish)),
    ("find_archived_url", Plain(Read)),
    ("find_file", Plain(Search)),
    ("find_next", Plain(Search)),
    ("find_on_page_ctrl_f", Plain(Search)),
    ("finish", Plain(Finish)),
    ("get_terminal_output", Plain(Poll)),
    ("glob", Plain(Search)),
    ("go_back", Plain(Run)),
    ("google_search", Plain(Search)),
    ("goto", Plain(Read)),
    ("grep", Plain(Search)),
    ("grep_search", Plain(Search)),
    ("handoff", Plain(Message)),
    ("image_view", Plain(Read)),
    ("insert", Plain(Edit)),
    ("insert_content", Plain(Edit)),
    ("inspect_file_as_text", Plain(Read)),
    ("ipython", Code),
    ("jupyter", Code),
    ("killbash", Plain(Run)),
    ("killshell", Plain(Run)),
    ("list_dir", Plain(Read)),
    ("local_shell", Shell),
    ("lookup", Plain(Search)),
    ("ls", Plain(Read)),
    ("multi_tool_use.parallel", Plain(Run)),
    ("multiedit", Plain(Edit)),
    ("navigate", Plain(Read)),
    ("new_task", Plain(Run)),
    ("notebookedit", Plain(Edit)),
    ("notebookread", Plain(Read)),
    ("open", Plain(Read)),
    ("open_file", Plain(Read)),
    ("page_down", Plain(Read)),
    ("page_up", Plain(Read)),
    ("powershell", Shell),
    ("press", Plain(Run)),
    ("python", Code),
    ("python3", Code),
    ("python_interpreter", Code),
    ("python_repl", Code),
    ("query_database", Sql),
    ("read", Plain(Read)),
    ("repl", Code),
    ("replace", Plain(Edit)),
    ("replace_in_file", Plain(Edit)),
    ("report", Plain(Finish)),
    ("respond", Plain(Message)),
    ("run_bash", Shell),
    ("run_command", Shell),
    ("run_in_terminal", Shell),
    ("run_ipython", Code),
    ("run_python", Code),
    ("run_query", Sql),
    ("run_shell_command", Shell),
    ("run_sql", Sql),
    ("run_terminal_cmd", Shell),
    ("screenshot", Plain(Read)),
    ("scroll", Plain(Read)),
    ("scroll_down", Plain(Read)),
    ("scroll_up", Plain(Read)),
    ("search", Plain(Search)),
    ("search_dir", Plain(Search)),
    ("search_file", Plain(Search)),
    ("search_replace", Plain(Edit)),
    ("select_option", Plain(Run)),
    ("send_message_to_user", Plain(Message)),
    ("sequentialthinking", Plain(Think)),
    ("sh", Shell),
    ("shell", Shell),
    ("shell_command", Shell),
    ("snapshot", Plain(Read)),
    ("sql", Sql),
    ("sql_db_list_tables", Plain(Read)),
    ("sql_db_query", Sql),
    ("sql_db_query_checker", Plain(Think)),
    ("sql_db_schema", Plain(Read)),
    ("str_replace", Plain(Edit)),
    ("str_replace_based_edit_tool", Editor),
    ("str_replace_editor", Editor),
    ("submit", Plain(Finish)),
    ("switch_mode", Plain(Think)),
    ("task", Plain(Run)),
    ("task_done", Plain(Finish)),
    ("task_tracker", Plain(Think)),
    ("taskoutput", Plain(Poll)),
    ("terminal", Shell),
    ("terminaltool", Shell),
    ("terminate", Plain(Finish)),
    ("text_editor", Editor),
    ("text_editor_20250124", Editor),
    ("think", Plain(Think)),
    ("todoread", Plain(Think)),
    ("todowrite", Plain(Think)),
    ("transfer_to_human_agents", Plain(Message)),
    ("type", Plain(Run)),
    ("undo_edit", Plain(Edit)),
    ("update_plan", Plain(Think)),
    ("update_todo_list", Plain(Think)),
    ("view", Plain(Read)),
    ("view_file", Plain(Read)),
    ("view_image", Plain(Read)),
    ("visit", Plain(Read)),
    ("visit_page", Plain(Read)),
    ("visit_webpage", Plain(Read)),
    ("web_fetch", Plain(Read)),
    ("web_search", Plain(Search)),
    ("webfetch", Plain(Read)),
    ("websearch", Plain(Search)),
    ("wikipedia", Plain(Search)),
    ("wikipedia_search", Plain(Search)),
    ("write", Plain(Edit)),
    ("write_stdin", Plain(Run)),
    ("write_to_file", Plain(Edit)),
    ("write_todos", Plain(Think)),
];

/// Words of a name and what they say. The first row that has a word of the name decides.
const BY_WORD: &[(ToolKind, &[&str])] = &[
    (Shell, &["bash", "shell", "terminal", "powershell"]),
    (
        Plain(Think),
        &[
            "think",
            "thinking",
            "thought",
            "plan",
            "todo",
            "todos",
            "reflect",
            "scratchpad",
            "brainstorm",
        ],
    ),
    (Plain(Finish), &["finish", "final", "submit", "terminate", "completion", "done"]),
    (
        Plain(Search),
        &["search", "find", "grep", "glob", "lookup", "query", "retrieve", "wikipedia", "google"],
    ),
    (Sql, &["sql"]),
    (Code, &["python", "ipython", "jupyter", "interpreter", "repl", "javascript"]),
    (Plain(Poll), &["wait", "poll", "sleep", "status", "progress", "await"]),
    (Plain(Test), &["test", "tests", "pytest", "verify", "lint", "typecheck"]),
    (
        Plain(Change),
        &[
            "update", "delete", "remove", "cancel", "book", "send", "set", "add", "post", "put",
            "modify", "exchange", "return", "refund", "pay", "transfer", "schedule", "reserve",
            "order", "purchase", "buy", "enable", "disable", "grant", "revoke", "assign", "close",
            "merge", "deploy", "publish", "upload", "approve", "create", "make", "insert",
            "rename", "move", "save", "reply", "toggle", "suspend", "resume", "refuel", "reboot",
            "drop",
        ],
    ),
    (
        Plain(Read),
        &[
            "get",
            "list",
            "read",
            "fetch",
            "view",
            "show",
            "open",
            "describe",
            "load",
            "visit",
            "browse",
            "inspect",
            "check",
            "scroll",
            "download",
            "screenshot",
            "snapshot",
            "extract",
            "cat",
            "info",
            "history",
            "transcript",
            "navigate",
        ],
    ),
    (Plain(Edit), &["edit", "write", "patch", "replace"]),
    (Plain(Message), &["ask", "respond", "message", "notify", "say", "handoff"]),
];

/// Words that make a change a change of files.
const FILE_WORDS: [&str; 9] =
    ["file", "files", "edit", "notebook", "code", "text", "line", "lines", "content"];

/// How a tool is to be read.
pub(super) fn manner(tool: &str) -> ToolKind {
    let folded = fold(tool);
    if let Some(manner) = known(&folded) {
        return manner;
    }
    // `mcp__server__tool`, `functions.tool`, `server/tool`: the last part is the tool.
    let last = folded.rsplit("__").next().unwrap_or(&folded);
    let last = last.rsplit(['.', '/', ':']).next().unwrap_or(last);
    let known = if last.len() < folded.len() { known(last) } else { None };
    known.unwrap_or_else(|| by_words(tool))
}

/// The kind of a tool that code calls as a function, when its name is clear enough.
pub(super) fn called_kind(name: &str) -> Option<Kind> {
    if let Some(Plain(kind)) = known(name).filter(|_| name.contains('_')) {
        return Some(kind);
    }
    let words = words(name);
    let has = |word: &str| words.iter().any(|known| known == word);
    if words.len() > 1 && (has("search") || has("agent")) {
        return Some(Search);
    }
    None
}

/// What a statement does to a database.
pub(super) fn sql_kind(statement: &str) -> Kind {
    let start = statement.trim_start().trim_start_matches('.');
    let first: String = start
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .map(|c| c.to_ascii_uppercase())
        .collect();
    match first.as_str() {
        "SELECT" | "SHOW" | "DESCRIBE" | "DESC" | "EXPLAIN" | "PRAGMA" | "WITH" | "TABLES"
        | "SCHEMA" => Read,
        _ => Change,
    }
}

fn fold(tool: &str) -> String {
    tool.chars()
        .take(80)
        .map(|c| if c == '-' || c == ' ' { '_' } else { c.to_ascii_lowercase() })
        .collect()
}

fn known(folded: &str) -> Option<ToolKind> {
    let at = KNOWN.binary_search_by(|(name, _)| (*name).cmp(folded)).ok()?;
    KNOWN.get(at).map(|(_, manner)| *manner)
}

fn by_words(tool: &str) -> ToolKind {
    let words = words(tool);
    let has = |word: &str| words.iter().any(|known| known == word);
    let touches_files = FILE_WORDS.iter().any(|word| has(word));
    if (has("execute") || has("exec") || has("run"))
        && (has("command") || has("cmd") || has("script"))
    {
        return Shell;
    }
    if (has("execute") || has("run") || has("exec")) && has("code") {
        return Code;
    }
    // A leading verb decides: `get_order_status` reads, `cancel_pending_order` changes.
    let verb = words
        .first()
        .and_then(|word| BY_WORD.iter().find(|(_, list)| list.contains(&word.as_str())));
    let found = verb.or_else(|| BY_WORD.iter().find(|(_, list)| list.iter().any(|word| has(word))));
    match found.map(|(manner, _)| *manner) {
        Some(Plain(Change)) if touches_files => Plain(Edit),
        Some(manner) => manner,
        None => Plain(Run),
    }
}

/// The words of `snake_case`, `camelCase` and `kebab-case` names, in lower case.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    let mut was_lower = false;
    for c in name.chars().take(80) {
        if !c.is_alphanumeric() {
            open = false;
            continue;
        }
        if !open || (c.is_uppercase() && was_lower) {
            words.push(String::new());
            open = true;
        }
        was_lower = c.is_lowercase();
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_folded() {
        for pair in KNOWN.windows(2) {
            assert!(pair[0].0 < pair[1].0, "{} {}", pair[0].0, pair[1].0);
        }
        for (name, _) in KNOWN {
            assert_eq!(fold(name), *name);
        }
    }

    #[test]
    fn tools_are_known_or_guessed() {
        for (tool, want) in [
            ("Bash", Shell),
            ("bash", Shell),
            ("functions.shell", Shell),
            ("mcp__desktop__execute_command", Shell),
            ("run_shell_script", Shell),
            ("python", Code),
            ("run_code", Code),
            ("Read", Plain(Read)),
            ("MultiEdit", Plain(Edit)),
            ("Write", Plain(Edit)),
            ("TodoWrite", Plain(Think)),
            ("WebSearch", Plain(Search)),
            ("str_replace_editor", Editor),
            ("apply_patch", Patch),
            ("read_file", Plain(Read)),
            ("write_file", Plain(Edit)),
            ("create_file", Plain(Edit)),
            ("create_directory", Plain(Change)),
            ("list_directory", Plain(Read)),
            ("search_files", Plain(Search)),
            ("get_reservation_details", Plain(Read)),
            ("get_order_status", Plain(Read)),
            ("list_all_airports", Plain(Read)),
            ("search_direct_flight", Plain(Search)),
            ("update_reservation_flights", Plain(Change)),
            ("book_reservation", Plain(Change)),
            ("cancel_pending_order", Plain(Change)),
            ("send_certificate", Plain(Change)),
            ("return_delivered_order_items", Plain(Change)),
            ("transfer_to_human_agents", Plain(Message)),
            ("find_user_id_by_email", Plain(Search)),
            ("run_tests", Plain(Test)),
            ("verifyBuild", Plain(Test)),
            ("job_status", Plain(Poll)),
            ("wait_for_job", Plain(Poll)),
            ("submit_answer", Plain(Finish)),
            ("mcp__github__create_issue", Plain(Change)),
            ("mcp__fs__read-file", Plain(Read)),
            ("execute_sql", Sql),
            ("browser_click", Plain(Run)),
            ("getWeather", Plain(Read)),
            ("frobnicate", Plain(Run)),
        ] {
            assert_eq!(manner(tool), want, "{tool}");
        }
    }

    #[test]
    fn statements_read_or_change() {
        for (statement, want) in [
            ("select 1", Read),
            (" WITH a AS (SELECT 1) SELECT * FROM a", Read),
            (".tables", Read),
            ("INSERT INTO t VALUES (1)", Change),
            ("drop table t", Change),
        ] {
            assert_eq!(sql_kind(statement), want, "{statement}");
        }
    }

    #[test]
    fn the_host_has_the_last_word() {
        let policy = ToolPolicy { kind: Some(Poll), poll: true, stateful: false };
        let policies = ToolPolicies::default().with("check", policy);
        assert_eq!(policies.of("check"), policy);
        assert_eq!(policies.of("other"), ToolPolicy::default());
    }
}
