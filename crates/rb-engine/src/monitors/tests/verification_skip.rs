//! Done without a check; and the many ways to have checked.

use crate::test_util::check;

#[test]
fn an_edit_then_done() {
    check(
        "verification_skip",
        r#"
        read_file {"path": "src/auth.ts"} => export function login() {} | quiet
        edit_file {"path": "src/auth.ts", "content": "export function login(user: string) {}"} => ok | quiet
        think I have fixed the login function. The task is complete. | FIRED
        "#,
    );
}

#[test]
fn an_edit_then_submit() {
    check(
        "verification_skip",
        r"
        bash cat lib/parser.rb => def parse(s)\n  s.split\nend | quiet
        bash sed -i 's/split/strip.split/' lib/parser.rb => (no output) | quiet
        submit {} => submitted | FIRED
        ",
    );
}

#[test]
fn a_heredoc_then_finish() {
    check(
        "verification_skip",
        r#"
        execute_bash {"command": "cat > deploy.sh <<'EOF'\nset -e\ndocker build .\nEOF"} => (no output) | quiet
        finish {"message": "The script deploy.sh is written."} => ok | FIRED
        "#,
    );
}

#[test]
fn green_tests_and_then_another_edit() {
    check(
        "verification_skip",
        r#"
        edit_file {"path": "a.py", "content": "x = 1"} => ok | quiet
        bash pytest -q => 12 passed in 0.3s | quiet
        edit_file {"path": "b.py", "content": "y = 2"} => ok | quiet
        attempt_completion {"result": "Implemented x and y."} => ok | FIRED
        "#,
    );
}

#[test]
fn three_files_and_all_set() {
    check(
        "verification_skip",
        r#"
        Write {"file_path": "web/index.html", "content": "<h1>Hi</h1>"} => File created successfully | quiet
        Write {"file_path": "web/style.css", "content": "h1 { color: red }"} => File created successfully | quiet
        Write {"file_path": "web/app.js", "content": "console.log(1)"} => File created successfully | quiet
        think Your landing page is ready! I've implemented the header and the script. | FIRED
        "#,
    );
}

#[test]
fn a_patch_and_a_claim() {
    check(
        "verification_skip",
        r#"
        apply_patch {"input": "*** Begin Patch\n*** Update File: server/main.go\n-port := 80\n+port := 8080\n*** End Patch"} => Success. Updated the following files: M server/main.go | quiet
        think Done. The server now listens on 8080. | FIRED
        "#,
    );
}

#[test]
fn looking_at_something_else_is_no_check() {
    check(
        "verification_skip",
        r#"
        edit_file {"path": "billing/invoice.py", "content": "total = net * 1.19"} => ok | quiet
        read_file {"path": "README.md"} => # Billing | quiet
        bash git log --oneline -3 => 1a2b3c4 first | quiet
        think The fix has been implemented. | FIRED
        "#,
    );
}

#[test]
fn installing_something_is_no_check() {
    check(
        "verification_skip",
        r#"
        edit_file {"path": "package.json", "content": "{\"dependencies\": {\"zod\": \"3\"}}"} => ok | quiet
        bash npm install => added 1 package in 2s | quiet
        think I've updated the dependencies. All done! | FIRED
        "#,
    );
}

#[test]
fn a_commit_is_no_check() {
    check(
        "verification_skip",
        r#"
        bash sed -i 's/1.4.0/1.5.0/' Cargo.toml => (no output) | quiet
        bash git add -A && git commit -m "Bump version" => [main 9f8e7d6] Bump version\n 1 file changed, 1 insertion(+), 1 deletion(-) | quiet
        think The version bump is complete. | FIRED
        "#,
    );
}

#[test]
fn an_answer_file_nobody_looked_at() {
    check(
        "verification_skip",
        "
        bash echo 42 > /app/answer.txt => (no output) | quiet
        finish {} => ok | FIRED
        ",
    );
}

#[test]
fn a_todo_list_is_no_check() {
    check(
        "verification_skip",
        r#"
        edit_file {"path": "a.py", "content": "x"} => ok | quiet
        TodoWrite {"todos": [{"content": "fix", "status": "completed"}]} => ok | quiet
        think Everything is finished and works as expected. | FIRED
        "#,
    );
}

#[test]
fn an_echo_is_no_check() {
    check(
        "verification_skip",
        r#"
        edit_file {"path": "a.py", "content": "x"} => ok | quiet
        bash echo done => done | quiet
        submit {} => ok | FIRED
        "#,
    );
}

#[test]
fn asking_for_a_version_is_no_check() {
    check(
        "verification_skip",
        r#"
        edit_file {"path": "a.py", "content": "x"} => ok | quiet
        bash python --version => Python 3.12 | quiet
        submit {} => ok | FIRED
        "#,
    );
}

// What must stay silent.

#[test]
fn tested_after_the_edit() {
    check(
        "verification_skip",
        r#"
        edit_file {"path": "src/auth.ts", "content": "export {}"} => ok | quiet
        bash npx jest auth => Tests:       4 passed, 4 total | quiet
        think I have fixed the login function. The task is complete. | quiet
        "#,
    );
}

#[test]
fn read_again_after_the_edit() {
    check(
        "verification_skip",
        "
        bash sed -i 's/80/8080/' nginx.conf => (no output) | quiet
        bash cat nginx.conf => listen 8080; | quiet
        think The port is changed. All done! | quiet
        ",
    );
}

#[test]
fn the_diff_was_looked_at() {
    check(
        "verification_skip",
        r#"
        apply_patch {"input": "*** Begin Patch\n*** Update File: docs/api.md\n-old\n+new\n*** End Patch"} => Success. Updated the following files: M docs/api.md | quiet
        bash git diff => diff --git a/docs/api.md b/docs/api.md\n-old\n+new | quiet
        submit {} => submitted | quiet
        "#,
    );
}

#[test]
fn edited_and_run_in_one_command() {
    check(
        "verification_skip",
        "
        bash sed -i 's/n = 10/n = 100/' sim.py && python sim.py => mean 0.4987 | quiet
        think The simulation is done, the mean is 0.4987. | quiet
        ",
    );
}

#[test]
fn built_after_the_edit() {
    check(
        "verification_skip",
        r#"
        edit_file {"path": "cmd/root.go", "content": "package cmd"} => ok | quiet
        bash go build ./... => (no output) | quiet
        think The new command has been implemented. | quiet
        "#,
    );
}

#[test]
fn a_question_answered_without_changes() {
    check(
        "verification_skip",
        r#"
        Grep {"pattern": "rate_limit", "path": "src"} => src/limits.py:4:rate_limit = 100 | quiet
        read_file {"path": "src/limits.py"} => rate_limit = 100 | quiet
        think The rate limit is 100 per minute; it is set in src/limits.py. The analysis is complete. | quiet
        "#,
    );
}

#[test]
fn own_scratch_files_are_tidied_up() {
    check(
        "verification_skip",
        r#"
        bash {"command": "cat > /tmp/repro.py <<'EOF'\nimport app\nEOF"} => (no output) | quiet
        bash rm /tmp/repro.py => (no output) | quiet
        think The investigation is complete: the import works. | quiet
        "#,
    );
}

#[test]
fn a_booking_is_checked_by_its_own_answer() {
    check(
        "verification_skip",
        r#"
        get_user_details {"user_id": "mia_li_3668"} => {"name": "Mia Li", "membership": "gold"} | quiet
        book_reservation {"user_id": "mia_li_3668", "flight": "HAT136"} => {"reservation_id": "HATHAT", "status": "confirmed"} | quiet
        think Your booking is complete. The reservation is HATHAT. | quiet
        "#,
    );
}

#[test]
fn a_ticket_is_answered_and_closed() {
    check(
        "verification_skip",
        r#"
        send_message {"ticket": 9, "text": "We have refunded the order."} => {"ok": true} | quiet
        close_ticket {"ticket": 9} => {"ok": true, "state": "closed"} | quiet
        finish {} => ok | quiet
        "#,
    );
}

#[test]
fn being_done_is_only_planned() {
    check(
        "verification_skip",
        r#"
        edit_file {"path": "a.c", "content": "int main() { return 0; }"} => ok | quiet
        think Once the build is done I will run the linter. | quiet
        think The edit is not complete, the header is left. | quiet
        "#,
    );
}

#[test]
fn a_browser_looks_at_the_page() {
    check(
        "verification_skip",
        r#"
        Write {"file_path": "site/index.html", "content": "<h1>Menu</h1>"} => File created successfully | quiet
        browser_navigate {"url": "file:///site/index.html"} => Page title: Menu\n# Menu | quiet
        think The page is ready. | quiet
        "#,
    );
}

#[test]
fn said_while_the_tests_are_started() {
    check(
        "verification_skip",
        r#"
        edit_file {"path": "a.py", "content": "x"} => ok | quiet
        The fix is complete. Let me run the tests. :: bash pytest -q => 3 passed | quiet
        "#,
    );
}

#[test]
fn the_editor_reports_no_problems() {
    check(
        "verification_skip",
        r#"
        edit_file {"path": "a.ts", "content": "x"} => ok | quiet
        get_diagnostics {"path": "a.ts"} => No problems found. | quiet
        think The fix is complete. | quiet
        "#,
    );
}

#[test]
fn the_changed_line_was_searched_for() {
    check(
        "verification_skip",
        "
        bash sed -i 's/80/81/' conf/a.conf => (no output) | quiet
        bash grep -n listen conf/a.conf => 3:listen 81; | quiet
        think Done. The port is 81. | quiet
        ",
    );
}

#[test]
fn the_server_was_asked() {
    check(
        "verification_skip",
        r#"
        edit_file {"path": "server.js", "content": "x"} => ok | quiet
        bash node server.js & sleep 1; curl -s localhost:3000 => hello world | quiet
        think The endpoint is ready. | quiet
        "#,
    );
}
