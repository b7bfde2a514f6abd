//! Classifies tools: a table of known names, and the words of the name for all others.
//!
//! A host can override both with `ToolPolicies`.

use std::collections::BTreeMap;

use super::Kind;

/// Properties of a tool that the host declares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolPolicy {
    /// The kind of every call of this tool.
    pub kind: Option<Kind>,
    /// Repeated calls are normal.
    pub poll: bool,
    /// The same call may return different results (a browser, a session).
    pub stateful: bool,
}

/// Declared tools by exact name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolPolicies {
    by_name: BTreeMap<String, ToolPolicy>,
}

impl ToolPolicies {
    /// Adds a tool.
    #[must_use]
    pub fn with(mut self, tool: &str, policy: ToolPolicy) -> Self {
        self.by_name.insert(tool.to_owned(), policy);
        self
    }

    /// Returns the declared properties of a tool, or the default.
    pub fn of(&self, tool: &str) -> ToolPolicy {
        self.by_name.get(tool).copied().unwrap_or_default()
    }
}

/// Format of a tool's argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolKind {
    /// A command line.
    Shell,
    /// Source code.
    Code,
    /// An editor whose `command` argument selects the operation.
    Editor,
    /// A patch.
    Patch,
    /// A database statement.
    Sql,
    /// Named arguments.
    Plain(Kind),
}

use Kind::{Change, Edit, Finish, Message, Poll, Read, Run, Search, Test, Think};
use ToolKind::{Code, Editor, Patch, Plain, Shell, Sql};

/// Known names in lower case, with `_` for `-`.
#[rustfmt::skip]
const KNOWN: &[(ToolKind, &[&str])] = &[
    (Shell, &[
        "bash", "bash_20250124", "cmd", "container.exec", "developer__shell", "exec", "exec_command",
        "execute", "execute_bash", "execute_command", "local_shell", "powershell", "run_bash", "run_command",
        "run_in_terminal", "run_shell_command", "run_terminal_cmd", "sh", "shell", "shell_command",
        "terminal", "terminaltool",
    ]),
    (Code, &[
        "code", "code_execution", "code_interpreter", "execute_ipython_cell", "execute_python", "ipython",
        "jupyter", "python", "python3", "python_interpreter", "python_repl", "repl", "run_ipython",
        "run_python",
    ]),
    (Editor, &[
        "developer__text_editor", "editor", "file_editor", "fileeditortool", "str_replace_based_edit_tool",
        "str_replace_editor", "text_editor", "text_editor_20250124",
    ]),
    (Patch, &["apply_patch"]),
    (Sql, &["execute_sql", "query_database", "run_query", "run_sql", "sql", "sql_db_query"]),
    (Plain(Edit), &[
        "apply_diff", "create", "create_file", "delete_file", "edit", "edit_file", "edit_notebook", "insert",
        "insert_content", "multiedit", "notebookedit", "replace", "replace_in_file", "search_replace",
        "str_replace", "undo_edit", "write", "write_to_file",
    ]),
    (Plain(Read), &[
        "browse", "fetch", "find_archived_url", "goto", "image_view", "inspect_file_as_text", "list_dir",
        "ls", "navigate", "notebookread", "open", "open_file", "page_down", "page_up", "read", "screenshot",
        "scroll", "scroll_down", "scroll_up", "snapshot", "sql_db_list_tables", "sql_db_schema", "view",
        "view_file", "view_image", "visit", "visit_page", "visit_webpage", "web_fetch", "webfetch",
    ]),
    (Plain(Search), &[
        "codebase_search", "duckduckgo_search", "file_search", "find_file", "find_next",
        "find_on_page_ctrl_f", "glob", "google_search", "grep", "grep_search", "lookup", "search",
        "search_dir", "search_file", "web_search", "websearch", "wikipedia", "wikipedia_search",
    ]),
    (Plain(Run), &[
        "browse_interactive", "browser", "calculate", "calculator", "click", "close_terminal", "computer",
        "evaluate", "go_back", "killbash", "killshell", "multi_tool_use.parallel", "new_task", "press",
        "select_option", "task", "type", "write_stdin",
    ]),
    (Plain(Poll), &["await_terminal", "bashoutput", "get_terminal_output", "taskoutput"]),
    (Plain(Think), &[
        "exitplanmode", "sequentialthinking", "sql_db_query_checker", "switch_mode", "task_tracker", "think",
        "todoread", "todowrite", "update_plan", "update_todo_list", "write_todos",
    ]),
    (Plain(Message), &[
        "ask_followup_question", "ask_user", "askuserquestion", "handoff", "respond", "send_message_to_user",
        "transfer_to_human_agents",
    ]),
    (Plain(Finish), &[
        "attempt_completion", "complete_task", "done", "exit", "final_answer", "finish", "report", "submit",
        "task_done", "terminate",
    ]),
];

/// Words of tool names. The first row with a word of the name applies.
#[rustfmt::skip]
const BY_WORD: &[(ToolKind, &[&str])] = &[
    (Shell, &["bash", "shell", "terminal", "powershell"]),
    (Plain(Think), &[
        "think", "thinking", "thought", "plan", "todo", "todos", "reflect", "scratchpad", "brainstorm",
    ]),
    (Plain(Finish), &["finish", "final", "submit", "terminate", "completion", "done"]),
    (Plain(Search), &[
        "search", "find", "grep", "glob", "lookup", "query", "retrieve", "wikipedia", "google",
    ]),
    (Sql, &["sql"]),
    (Code, &["python", "ipython", "jupyter", "interpreter", "repl", "javascript"]),
    (Plain(Poll), &["wait", "poll", "sleep", "status", "progress", "await"]),
    (Plain(Test), &["test", "tests", "pytest", "verify", "lint", "typecheck"]),
    (Plain(Change), &[
        "update", "delete", "remove", "cancel", "book", "send", "set", "add", "post", "put", "modify",
        "exchange", "return", "refund", "pay", "transfer", "schedule", "reserve", "order", "purchase", "buy",
        "enable", "disable", "grant", "revoke", "assign", "close", "merge", "deploy", "publish", "upload",
        "approve", "create", "make", "insert", "rename", "move", "save", "reply", "toggle", "suspend",
        "resume", "refuel", "reboot", "drop",
    ]),
    (Plain(Read), &[
        "get", "list", "read", "fetch", "view", "show", "open", "describe", "load", "visit", "browse",
        "inspect", "check", "scroll", "download", "screenshot", "snapshot", "extract", "cat", "info",
        "history", "transcript", "navigate",
    ]),
    (Plain(Edit), &["edit", "write", "patch", "replace"]),
    (Plain(Message), &["ask", "respond", "message", "notify", "say", "handoff"]),
];

/// Words that turn a change into a change of files.
const FILE_WORDS: [&str; 9] =
    ["file", "files", "edit", "notebook", "code", "text", "line", "lines", "content"];

/// Returns the argument format of a tool.
pub(super) fn kind_of(tool: &str) -> ToolKind {
    let lowercased = fold(tool);
    if let Some(tool_kind) = known(&lowercased) {
        return tool_kind;
    }
    // In `mcp__server__tool`, `functions.tool` and `server/tool` the last part is the tool.
    let last = lowercased.rsplit("__").next().unwrap_or(&lowercased);
    let last = last.rsplit(['.', '/', ':']).next().unwrap_or(last);
    let known = if last.len() < lowercased.len() { known(last) } else { None };
    known.unwrap_or_else(|| by_words(tool))
}

/// Returns the kind of a tool that code calls as a function, if its name is specific enough.
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

/// Returns the kind of a database statement.
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

fn known(lowercased: &str) -> Option<ToolKind> {
    KNOWN.iter().find(|(_, names)| names.contains(&lowercased)).map(|(kind, _)| *kind)
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
    match found.map(|(tool_kind, _)| *tool_kind) {
        Some(Plain(Change)) if touches_files => Plain(Edit),
        Some(tool_kind) => tool_kind,
        None => Plain(Run),
    }
}

/// Returns the words of a `snake_case`, `camelCase` or `kebab-case` name in lower case.
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
    fn known_names_are_unique_and_folded() {
        let names: Vec<&str> = KNOWN.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        for (at, name) in names.iter().enumerate() {
            assert_eq!(fold(name), *name);
            assert!(!names[..at].contains(name), "{name} twice");
        }
    }

    #[test]
    fn tools_are_classified_by_table_or_words() {
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
            assert_eq!(kind_of(tool), want, "{tool}");
        }
    }

    #[test]
    fn database_statements_are_classified() {
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
    fn declared_tools_are_found_by_exact_name() {
        let policy = ToolPolicy { kind: Some(Poll), poll: true, stateful: false };
        let policies = ToolPolicies::default().with("check", policy);
        assert_eq!(policies.of("check"), policy);
        assert_eq!(policies.of("other"), ToolPolicy::default());
    }
}
