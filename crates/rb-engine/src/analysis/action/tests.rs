//! Analysis of whole steps.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::step::Input;

fn analyse_call(tool: &str, input: &str) -> ActionSummary {
    let step = Step::default().with_action(tool, Input::Text(input));
    analyse(&step, &ToolPolicies::default())
}

/// Formats the kind, the flags (`e`dits, `t`ests, `v`erifies, `r`everts, `p`oll), then files, test targets and query.
fn show(analyse_call: &ActionSummary) -> String {
    let mut out = format!("{:?}", analyse_call.kind);
    let flags = [
        (analyse_call.edits, 'e'),
        (analyse_call.tests, 't'),
        (analyse_call.verifies, 'v'),
        (analyse_call.reverts, 'r'),
        (analyse_call.poll, 'p'),
    ];
    let flags: String = flags.iter().filter(|(is, _)| *is).map(|(_, letter)| *letter).collect();
    if !flags.is_empty() {
        let _ = write!(out, " {flags}");
    }
    for (mark, files) in
        [("r", &analyse_call.reads), ("w", &analyse_call.writes), ("x", &analyse_call.removes)]
    {
        for file in files {
            let _ = write!(out, " {mark}:{}", file.path);
            match file.lines {
                Some(Lines { from, to: u32::MAX }) if from > 1_000_000 => out.push_str("@end"),
                Some(Lines { from, to: u32::MAX }) => {
                    let _ = write!(out, "@{from}-");
                }
                Some(Lines { from, to }) => {
                    let _ = write!(out, "@{from}-{to}");
                }
                None => {}
            }
        }
    }
    for target in &analyse_call.test_targets {
        let _ = write!(out, " t:{target}");
    }
    if let Some(query) = &analyse_call.query {
        let _ = write!(out, " q:{query}");
    }
    out
}

#[track_caller]
fn check(tool: &str, rows: &[(&str, &str)]) {
    let shown =
        |(input, _): &(&str, &str)| format!("{input} => {}", show(&analyse_call(tool, input)));
    let wanted = |(input, want): &(&str, &str)| format!("{input} => {want}");
    let wrong: Vec<_> =
        rows.iter().map(|row| (shown(row), wanted(row))).filter(|(is, want)| is != want).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn read_commands() {
    check(
        "bash",
        &[
            ("cat a.py", "Read r:a.py"),
            ("cd /repo && cat src/a.py", "Read r:/repo/src/a.py"),
            ("cat -n ./a.py | head -50", "Read r:a.py@1-50"),
            ("grep x a.py | head -5", "Search r:a.py q:x"),
            ("head -n 20 a.py", "Read r:a.py@1-20"),
            ("head -20 a.py", "Read r:a.py@1-20"),
            ("tail -n 5 a.log", "Read r:a.log@end"),
            ("tail -n +30 a.py", "Read r:a.py@30-"),
            ("sed -n '10,20p' a.py", "Read r:a.py@10-20"),
            ("sed -n 10,+5p a.py", "Read r:a.py@10-15"),
            ("sed -n '10,$p' a.py", "Read r:a.py@10-"),
            ("sed 's/a/b/' a.py", "Read r:a.py"),
            ("nl -ba a.py | sed -n '1,80p'", "Read r:a.py@1-80"),
            ("ls -la src", "Read r:src"),
            ("ls", "Read"),
            ("wc -l *.py", "Read r:*.py"),
            ("awk 'NR>3' a.txt", "Read r:a.txt"),
            ("jq '.a' b.json", "Read r:b.json"),
            ("grep -rn \"def foo\" src/", "Search r:src q:def foo"),
            ("grep -n -A 5 foo a.py", "Search r:a.py q:foo"),
            ("grep -e foo a.py", "Search r:a.py q:foo"),
            ("rg -t py 'class \\w+' lib", "Search r:lib q:class \\w+"),
            ("cat a.py | grep foo", "Search r:a.py q:foo"),
            ("find . -name '*.py' | xargs grep foo", "Search r:. q:*.py"),
            ("find src -type f", "Search r:src"),
            ("fd models", "Search q:models"),
            ("git grep foo", "Search q:foo"),
            ("git status", "Read"),
            ("git log --oneline -5", "Read"),
            ("git diff", "Read v"),
            ("git -C /repo show HEAD:a.py", "Read r:HEAD:a.py"),
            ("curl -s https://a.b/c", "Read r:https://a.b/c"),
            ("which python", "Read"),
            ("sleep 30", "Poll p"),
            ("tail -f a.log", "Read p r:a.log@end"),
            ("sleep 5 && cat a.log", "Read p r:a.log"),
            ("timeout 10 cat a.py", "Read r:a.py"),
            ("sudo -u me cat a", "Read r:a"),
            ("pip list", "Read"),
            ("sqlite3 a.db 'select 1 from t'", "Read q:select 1 from t"),
        ],
    );
}

#[test]
fn edit_commands() {
    check(
        "bash",
        &[
            ("sed -i 's/a/b/' a.py", "Edit e w:a.py"),
            ("sed -i.bak -e 's/a/b/' -e 's/c/d/' a.py b.py", "Edit e w:a.py w:b.py"),
            ("sed -i '' 's/a/b/' a.py", "Edit e w:a.py"),
            ("perl -pi -e 's/a/b/' a.py", "Edit e w:a.py"),
            ("echo hi > a.txt", "Edit e w:a.txt"),
            ("printf 'x' >> a.txt", "Edit e w:a.txt"),
            ("cat > a.py << 'EOF'\nprint(1)\nEOF", "Edit e w:a.py"),
            ("cat <<'EOF' > a.py\nimport x\nEOF\npython a.py", "Edit ev r:a.py w:a.py"),
            ("echo x | tee a.txt", "Edit e w:a.txt"),
            ("echo x | sudo tee -a a.txt > /dev/null", "Edit e w:a.txt"),
            ("cp a.py b.py", "Edit e r:a.py w:b.py"),
            ("mv a.py b.py", "Edit e r:a.py w:b.py x:a.py"),
            ("rm -rf build", "Run x:build"),
            ("touch a.py", "Edit e w:a.py"),
            ("git checkout -- a.py", "Edit er w:a.py"),
            ("git checkout main", "Run"),
            ("git stash", "Edit er"),
            ("git stash list", "Read"),
            ("git apply <<'EOF'\n--- a/x.py\n+++ b/x.py\n@@\nEOF", "Edit e w:x.py"),
            (
                "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.py\n*** End Patch\nEOF",
                "Edit e w:a.py",
            ),
            ("python - <<'EOF'\nopen('a.py','w').write('x')\nEOF", "Edit e w:a.py"),
            ("python3 -c \"from pathlib import Path; Path('a').write_text('b')\"", "Edit e w:a"),
            (
                "cd /repo; sed -i 's/a/b/' x.py && python -m pytest tests/test_x.py",
                "Edit etv w:/repo/x.py t:tests/test_x.py",
            ),
            ("sed -i 's/a/b/' x.py && cat x.py", "Edit ev r:x.py w:x.py"),
            ("sed -i 's/a/b/' x.py && git diff", "Edit ev w:x.py"),
            ("bash -lc \"cd /r && sed -i 's/a/b/' x.py\"", "Edit e w:/r/x.py"),
            ("find . -name '*.py' -exec sed -i 's/a/b/' {} +", "Edit e r:. q:*.py"),
            ("grep x a.py > b.txt", "Edit e r:a.py w:b.txt q:x"),
            ("> a.log", "Run w:a.log"),
        ],
    );
}

#[test]
fn test_and_run_commands() {
    check(
        "bash",
        &[
            ("pytest", "Test tv"),
            (
                "pytest -q tests/test_a.py::test_b -k 'x or y'",
                "Test tv t:tests/test_a.py::test_b t:x or y",
            ),
            ("python -m pytest tests -x 2>&1 | tail -20", "Test tv t:tests"),
            ("PYTHONPATH=. python3.9 -m unittest a.b.C", "Test tv t:a.b.C"),
            ("python manage.py test app.tests --parallel 4", "Test tv t:app.tests"),
            ("./tests/runtests.py admin_views -v 2", "Test tv t:admin_views"),
            ("cd tests && python runtests.py lookup", "Test tv t:lookup"),
            ("cargo test -p x name", "Test tv t:name"),
            ("cargo +nightly nextest run", "Test tv t:run"),
            ("go test ./... -run TestA", "Test tv t:./... t:TestA"),
            ("npm test", "Test tv"),
            ("npm run test:unit -- a.test.ts", "Test tv t:a.test.ts"),
            ("yarn jest a", "Run v"),
            ("npx jest src/a.test.js", "Test tv t:src/a.test.js"),
            ("make test", "Test tv"),
            ("make -j4 check", "Test tv"),
            ("pre-commit run --all-files", "Run v"),
            ("mvn -q test", "Test tv"),
            ("./gradlew test", "Test tv"),
            ("uv run pytest tests", "Test tv t:tests"),
            ("tox -e py39", "Test tv"),
            ("pytest --version", "Read"),
            ("bin/test sympy/core", "Test tv t:sympy/core"),
            ("python test_repro.py", "Test tv t:test_repro.py"),
            ("pytest > log.txt", "Test tv w:log.txt"),
            ("cargo build --release", "Run v"),
            ("cargo clippy", "Run v"),
            ("npm install", "Run"),
            ("npm run build", "Run v"),
            ("go vet ./...", "Run v"),
            ("make", "Run v"),
            ("python repro.py", "Run v r:repro.py"),
            ("python -c 'print(1)'", "Run v"),
            ("./run.sh", "Run v"),
            ("bash script.sh", "Run v r:script.sh"),
            ("pip install x", "Run"),
            ("mkdir -p a/b", "Run"),
            ("echo hello", "Run"),
            ("git add -A && git commit -m 'x'", "Run"),
            ("git push", "Change"),
            ("curl -X POST -d '{}' https://a.b", "Change r:https://a.b"),
            ("kubectl get pods", "Poll p"),
            ("mypy src", "Run v"),
            ("for f in *.py; do python -m py_compile $f; done", "Run v"),
            ("if [ -f a ]; then cat a; fi", "Read r:a"),
            ("x=$(git log -1); echo $x", "Read"),
            ("python gen.py > out.json", "Edit ev r:gen.py w:out.json"),
            (
                "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A && git diff --cached",
                "Finish v",
            ),
            ("# only a comment", "Run"),
            ("", "Poll p"),
        ],
    );
}

#[test]
fn structured_tools() {
    for (tool, input, want) in [
        ("Bash", r#"{"command": "pytest -q", "description": "Run the tests"}"#, "Test tv"),
        ("shell", r#"{"command": ["bash", "-lc", "cat a.py"]}"#, "Read r:a.py"),
        (
            "shell",
            r#"{"command": ["apply_patch", "*** Begin Patch\n*** Update File: it's.py\n"]}"#,
            "Edit e w:it's.py",
        ),
        ("open", "\"src/a.py\" 120", "Read r:src/a.py"),
        ("exec_command", r#"{"cmd": "ls src", "yield_time_ms": 1000}"#, "Read r:src"),
        ("execute_bash", r#"{"command": "", "is_input": "true"}"#, "Poll p"),
        ("Read", r#"{"file_path": "/r/a.py", "offset": 10, "limit": 20}"#, "Read r:/r/a.py@10-29"),
        (
            "Edit",
            r#"{"file_path": "/r/a.py", "old_string": "x", "new_string": "y"}"#,
            "Edit e w:/r/a.py",
        ),
        ("Write", r#"{"file_path": "/r/a.py", "content": "x"}"#, "Edit e w:/r/a.py"),
        ("Grep", r#"{"pattern": "foo", "path": "src"}"#, "Search r:src q:foo"),
        ("Glob", r#"{"pattern": "**/*.rs"}"#, "Search q:**/*.rs"),
        (
            "str_replace_editor",
            r#"{"command": "view", "path": "/r/a.py", "view_range": [5, 9]}"#,
            "Read r:/r/a.py@5-9",
        ),
        (
            "str_replace_editor",
            r#"{"command": "view", "path": "/r/a.py", "view_range": [5, -1]}"#,
            "Read r:/r/a.py@5-",
        ),
        (
            "str_replace_editor",
            r#"{"command": "create", "path": "/r/a.py", "file_text": ""}"#,
            "Edit e w:/r/a.py",
        ),
        (
            "str_replace_editor",
            r#"{"command": "undo_edit", "path": "/r/a.py"}"#,
            "Edit er w:/r/a.py",
        ),
        (
            "apply_patch",
            "*** Begin Patch\n*** Add File: a.py\n+x\n*** Delete File: b.py\n",
            "Edit e w:a.py x:b.py",
        ),
        ("open", "src/a.py 120", "Read r:src/a.py"),
        ("search", "The Letter", "Search q:The Letter"),
        ("lookup", "notoriety", "Search q:notoriety"),
        ("finish", "yes", "Finish"),
        ("final_answer", r#"{"answer": "4"}"#, "Finish"),
        ("web_search", r#"{"query": "who won"}"#, "Search q:who won"),
        ("visit_page", r#"{"url": "https://a.b/"}"#, "Read r:https://a.b"),
        ("python_interpreter", r#"{"code": "print(web_search('a b'))"}"#, "Search q:a b"),
        ("python", "import os\nprint(os.getcwd())", "Run v"),
        ("get_reservation_details", r#"{"reservation_id": "XAZ3C0"}"#, "Read"),
        ("search_direct_flight", r#"{"origin": "ATL", "destination": "LAS"}"#, "Search q:ATL LAS"),
        ("book_reservation", r#"{"user_id": "u"}"#, "Change"),
        ("think", r#"{"thought": "hm"}"#, "Think"),
        ("TodoWrite", r#"{"todos": []}"#, "Think"),
        ("respond", r#"{"content": "hi"}"#, "Message"),
        ("run_tests", r#"{"path": "tests/a"}"#, "Test tv r:tests/a t:tests/a"),
        ("execute_sql", r#"{"query": "DELETE FROM t"}"#, "Change q:DELETE FROM t"),
        ("read_file", "{'path': 'a.py', 'start_line': 3, 'end_line': 7}", "Read r:a.py@3-7"),
        ("read_files", r#"{"paths": ["a.py", "b.py"]}"#, "Read r:a.py r:b.py"),
    ] {
        assert_eq!(show(&analyse_call(tool, input)), want, "{tool} {input}");
    }
}

#[test]
fn host_policies_override_the_classification() {
    let policies = ToolPolicies::default()
        .with("deploy_check", ToolPolicy { kind: Some(Kind::Poll), poll: true, stateful: true });
    let step = Step::default().with_action("deploy_check", Input::None);
    let analyse_call = analyse(&step, &policies);
    assert_eq!(
        (analyse_call.kind, analyse_call.poll, analyse_call.stateful),
        (Kind::Poll, true, true)
    );
}

#[test]
fn a_step_without_a_tool_is_a_message() {
    let step = Step::thought("Which flight\n would you like?")
        .with_observation("The first. No error please.");
    let analyse_call = analyse(&step, &ToolPolicies::default());
    assert_eq!((analyse_call.kind, analyse_call.outcome.failed), (Kind::Message, false));
    assert_eq!(analyse_call.text_for_meaning, "Which flight would you like?");
    assert_eq!(analyse(&Step::default(), &ToolPolicies::default()).kind, Kind::Message);
}

#[test]
fn fingerprints_ignore_form() {
    let same = |a: (&str, &str), b: (&str, &str)| {
        let (a, b) = (analyse_call(a.0, a.1), analyse_call(b.0, b.1));
        (a.key == b.key, a.loose_key == b.loose_key, a.target_key == b.target_key)
    };
    let all = (true, true, true);
    assert_eq!(same(("t", r#"{"a": 1, "b": "x"}"#), ("t", "{'b': 'x','a':1}")), all);
    assert_eq!(same(("bash", "cat  a.py"), ("bash", "cat a.py ")), all);
    assert_eq!(
        same(("t", r#"{"a": 1, "request_id": "1"}"#), ("t", r#"{"a": 1, "request_id": "2"}"#)),
        all
    );
    // An explanation, a folder and an echo are decoration.
    assert_eq!(
        same(("t", r#"{"a": 1, "reason": "p"}"#), ("t", r#"{"a": 1, "reason": "q"}"#)),
        (false, true, true)
    );
    assert_eq!(
        same(("bash", "cat a.py"), ("bash", "# look\necho now; cat a.py")),
        (false, true, true)
    );
    // Other lines of the same file are a different action on the same target.
    assert_eq!(
        same(("bash", "sed -n 1,9p a.py"), ("bash", "sed -n 9,20p a.py")),
        (false, false, true)
    );
    assert_eq!(
        same(("bash", "grep -n foo a.py"), ("bash", "grep -rn foo a.py")),
        (false, false, true)
    );
    let none = (false, false, false);
    assert_eq!(same(("get", r#"{"id": "A1"}"#), ("get", r#"{"id": "A2"}"#)), none);
    assert_eq!(same(("bash", "cat a.py"), ("bash", "cat b.py")), none);
    assert_eq!(same(("bash", "echo a > f"), ("bash", "echo a > g")), none);
    // Indentation is content.
    assert!(!same(("edit", "if x:\n  y"), ("edit", "if x:\n    y")).0);
}

#[test]
fn descriptions_are_short() {
    for (tool, input, want) in [
        ("bash", "grep -rn 'def foo' src/", "search def foo src"),
        ("bash", "sed -i 's/a/b/' a.py", "edit a.py"),
        ("bash", "pytest tests/a.py", "test tests/a.py"),
        ("bash", "cargo build", "cargo build"),
        ("web_search", r#"{"query": "who won"}"#, "search who won"),
        ("cancel_reservation", r#"{"reservation_id": "A1"}"#, "cancel reservation A1"),
        ("get_user_details", r#"{"user_id": "u_1"}"#, "read u_1"),
    ] {
        assert_eq!(analyse_call(tool, input).text_for_meaning, want, "{tool} {input}");
    }
}

#[test]
fn commands_are_listed_with_their_subcommands() {
    let analyse_call = analyse_call(
        "bash",
        "cd a && git diff | head; cargo test; python -m pytest; FOO=1 python x.py",
    );
    assert_eq!(
        analyse_call.commands,
        ["git diff", "cargo test", "python -m pytest", "python x.py"]
    );
}

#[test]
fn hostile_texts_take_linear_time() {
    for unit in [
        "$(", "(", ")", "\"", "'", "`", "<<E\n", "a|", "{\"a\":", "[", "\\", "\u{1b}[", "open(\"",
        "Path('", "/tmp/", "'a ", "é", "1:", "x)\n",
    ] {
        let text = unit.repeat(100_000 / unit.len());
        for tool in ["bash", "python", "search", "str_replace_editor"] {
            let step =
                Step::thought(&text).with_action(tool, Input::Text(&text)).with_observation(&text);
            let analyse_call = analyse(&step, &ToolPolicies::default());
            assert!(
                analyse_call.reads.len() <= 16
                    && analyse_call.writes.len() <= 16
                    && analyse_call.commands.len() <= 16
            );
            assert!(entities(&text, &text).len() <= 16);
            assert!(analyse_call.text_for_meaning.chars().count() <= 300);
        }
    }
}

proptest! {
    #[test]
    fn no_text_causes_a_panic(tool in "[a-zA-Z_]{0,12}|bash|python|edit", input in "\\PC{0,200}", seen in "(\\PC|\n|\u{1b}){0,200}") {
        let step = Step::thought(&seen).with_action(&tool, Input::Text(&input)).with_observation(&seen);
        let analyse_call = analyse(&step, &ToolPolicies::default());
        prop_assert_eq!(&analyse_call, &analyse(&step, &ToolPolicies::default()));
    }

    #[test]
    fn no_command_line_causes_a_panic(input in "([a-z./ -]|\\$\\(|[|&;<>(){}'\"`\\\\#\n=]|<<EOF|EOF|sed -i|cat|python|find|xargs|é){0,60}") {
        let step = Step::default().with_action("bash", Input::Text(&input)).with_observation(&input);
        analyse(&step, &ToolPolicies::default());
        let step = Step::default().with_action("python", Input::Text(&input)).with_observation(&input);
        analyse(&step, &ToolPolicies::default());
    }

    #[test]
    fn fingerprints_ignore_order_and_spacing_of_arguments(
        pairs in prop::collection::btree_map("[a-z_]{1,8}", "[a-zA-Z0-9 ./-]{0,20}", 1..6),
        gap in "[ \n\t]{0,3}",
    ) {
        let forward: Vec<String> = pairs.iter().map(|(k, v)| format!("\"{k}\": \"{v}\"")).collect();
        let backward: Vec<String> = pairs.iter().rev().map(|(k, v)| format!("\"{k}\"{gap}:\"{v}\"{gap}")).collect();
        let one = analyse_call("some_tool", &format!("{{{}}}", forward.join(", ")));
        let two = analyse_call("some_tool", &format!("{{{gap}{}}}", backward.join(",")));
        prop_assert_eq!((one.key, one.loose_key), (two.key, two.loose_key));
    }

    #[test]
    fn stripping_twice_changes_nothing(text in "(\\PC|\n){0,120}") {
        let mut once = String::new();
        normalize::strip_into(&mut once, &text, normalize::Level::Spacing);
        let mut twice = String::new();
        normalize::strip_into(&mut twice, &once, normalize::Level::Spacing);
        prop_assert_eq!(once, twice);
    }
}
