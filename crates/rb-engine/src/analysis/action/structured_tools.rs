//! Effects of tools with named arguments: files, line ranges, queries.

use super::Kind;
use super::args::Args;
use super::effects::Effects;
use super::file_refs::Lines;

/// Argument names for a file, most specific first.
#[rustfmt::skip]
const PATH_NAMES: [&str; 15] = [
    "file_path", "path", "filepath", "file", "filename", "file_name", "target_file", "notebook_path",
    "abs_path", "absolute_path", "relative_workspace_path", "directory", "dir_path", "folder", "uri",
];
/// Argument names for several files.
const PATH_LISTS: [&str; 4] = ["paths", "files", "file_paths", "filenames"];
/// Argument names for a query, most specific first.
#[rustfmt::skip]
const QUERY_NAMES: [&str; 21] = [
    "query", "q", "pattern", "regex", "search_query", "search_term", "search_string", "search", "keyword",
    "keywords", "term", "question", "glob", "glob_pattern", "prompt", "search_text", "text", "entity", "topic",
    "title", "name",
];

/// Adds the effects of a plain tool of `kind` to `effects`.
pub(super) fn walk(args: &Args<'_>, kind: Kind, effects: &mut Effects) {
    effects.add_kind(kind);
    let lines = lines(args);
    let mut path = |path: &str| {
        if kind == Kind::Edit { effects.write(path) } else { effects.read(path, lines) }
    };
    if matches!(kind, Kind::Edit | Kind::Read | Kind::Search | Kind::Test) {
        args.get(&PATH_NAMES).into_iter().for_each(&mut path);
        PATH_LISTS.iter().flat_map(|name| args.all(name)).for_each(&mut path);
        if let (Some(plain), Kind::Read | Kind::Edit) = (args.plain(), kind) {
            // `open a.py 20`: the first word is the file.
            let first = plain.split_whitespace().next().unwrap_or("").trim_matches(['"', '\'']);
            if super::file_refs::looks_like_path(first) {
                path(first);
            }
        }
    }
    if matches!(kind, Kind::Read | Kind::Run)
        && let Some(page) = args.get(&["url", "link", "href"])
    {
        effects.read(page, None);
    }
    if matches!(kind, Kind::Search | Kind::Read) {
        let asked = if kind == Kind::Search {
            args.get(&QUERY_NAMES).or_else(|| args.plain())
        } else {
            args.get(&QUERY_NAMES[..13])
        };
        match asked {
            Some(query) => effects.add_query(query),
            // Unknown argument names: their values are the query.
            None if kind == Kind::Search => {
                let all: Vec<&str> =
                    args.pairs().map(|(_, value)| value).filter(|v| v.len() < 80).take(6).collect();
                effects.add_query(&all.join(" "));
            }
            None => {}
        }
    }
    if kind == Kind::Test
        && let Some(target) =
            args.get(&["test", "tests", "target", "path", "file", "name", "filter", "test_path"])
    {
        effects.target(target);
    }
}

/// Handles an editor whose `command` argument selects the operation.
pub(super) fn editor(args: &Args<'_>, effects: &mut Effects) {
    let command = args.get(&["command", "action", "mode", "operation"]).unwrap_or_default();
    let kind = match command {
        "view" | "read" | "open" | "show" => Kind::Read,
        "" if args.get(&["old_str", "new_str", "file_text", "content"]).is_none() => Kind::Read,
        _ => Kind::Edit,
    };
    effects.reverts |= command == "undo_edit";
    walk(args, kind, effects);
}

/// Returns the line range of `view_range`, `start_line`/`end_line` or `offset`/`limit`.
fn lines(args: &Args<'_>) -> Option<Lines> {
    let number = |names: &[&str]| args.get(names).and_then(|value| value.parse::<i64>().ok());
    let line = |value: i64| u32::try_from(value).unwrap_or(u32::MAX);
    let from = number(&[
        "view_range[0]",
        "start_line",
        "line_start",
        "startLine",
        "start_line_one_indexed",
        "line",
        "line_number",
        "start",
    ]);
    if let Some(from) = from {
        let to = number(&[
            "view_range[1]",
            "end_line",
            "line_end",
            "endLine",
            "end_line_one_indexed_inclusive",
            "end",
        ]);
        return Some(Lines { from: line(from.max(0)), to: line(to.unwrap_or(-1)) });
    }
    let offset = number(&["offset"]);
    let limit = number(&["limit", "max_lines"]);
    if offset.is_none() && limit.is_none() {
        return None;
    }
    let from = offset.unwrap_or(1).max(0);
    Some(Lines {
        from: line(from),
        to: limit.map_or(u32::MAX, |limit| line(from.saturating_add(limit).saturating_sub(1))),
    })
}
