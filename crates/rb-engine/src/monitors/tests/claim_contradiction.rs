//! Claims against what was seen or said; and what only sounds like a contradiction.

use crate::test_util::check;

#[test]
fn tests_said_to_pass_after_a_failing_run() {
    check(
        "claim_contradiction",
        "
        bash pytest -q => 11 passed, 2 failed in 3.1s | quiet
        think All tests pass now, so the change is ready. | FIRED
        ",
    );
}

#[test]
fn cargo_fails_and_success_is_reported() {
    check(
        "claim_contradiction",
        r#"
        shell cargo test => test result: FAILED. 17 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out | quiet
        bash git status --short => M src/lib.rs | quiet
        attempt_completion {"result": "done"} => ok | quiet
        think I have finished the work. All tests passed. | FIRED
        "#,
    );
}

#[test]
fn two_answers_with_nothing_learned_between() {
    check(
        "claim_contradiction",
        "
        think The answer is 42. | quiet
        think Let me state it clearly. The answer is 17. | FIRED
        ",
    );
}

#[test]
fn a_research_agent_changes_its_answer() {
    check(
        "claim_contradiction",
        r#"
        web_search {"query": "height of the Eiffel tower"} => The Eiffel Tower is 330 metres tall. | quiet
        think Final answer: 330 metres | quiet
        think Final answer: 324 metres | FIRED
        "#,
    );
}

#[test]
fn a_statement_and_its_denial() {
    check(
        "claim_contradiction",
        "
        think The cache is shared between worker processes. | quiet
        think The cache is not shared between worker processes. | FIRED
        ",
    );
}

#[test]
fn a_function_is_and_is_not_called_from_the_scheduler() {
    check(
        "claim_contradiction",
        "
        bash grep -rn flush_queue . => ./queue.py:9:def flush_queue(): | quiet
        think The flush_queue function is called from the scheduler. | quiet
        think Looking at it again. The flush_queue function is never called from the scheduler. | FIRED
        ",
    );
}

#[test]
fn mocha_fails_and_the_specs_are_said_to_succeed() {
    check(
        "claim_contradiction",
        r"
        bash npx mocha => 12 passing (80ms)\n  2 failing | quiet
        bash git log -1 --format=%s => Add rounding | quiet
        think The specs succeed. | FIRED
        ",
    );
}

#[test]
fn a_go_run_fails_and_the_tests_are_said_to_be_passing() {
    check(
        "claim_contradiction",
        r"
        bash go test ./... => --- FAIL: TestParse (0.00s)\n    parse_test.go:9: boom\nFAIL\nFAIL\tacme/parse\t0.012s | quiet
        All the tests are passing. :: bash git push origin main => To github.com:acme/parse.git | FIRED
        ",
    );
}

#[test]
fn another_final_answer_in_the_same_breath_of_evidence() {
    check(
        "claim_contradiction",
        r#"
        python_interpreter {"code": "print(sum(range(101)))"} => 5050 | quiet
        think The final answer is 5050. | quiet
        think I will hand it in. The final answer is 5151. | FIRED
        "#,
    );
}

// What must stay silent.

#[test]
fn tests_fixed_by_an_edit_and_run_again() {
    check(
        "claim_contradiction",
        r#"
        bash pytest -q => 11 passed, 2 failed in 3.1s | quiet
        edit_file {"path": "a.py", "content": "x = 1"} => ok | quiet
        bash pytest -q => 13 passed in 3.0s | quiet
        think All tests pass now. | quiet
        "#,
    );
}

#[test]
fn tests_are_only_expected_to_pass() {
    check(
        "claim_contradiction",
        "
        bash npm test => Tests:       3 failed, 40 passed, 43 total | quiet
        think After the next change the tests should pass. | quiet
        think Once all tests pass I will open the pull request. | quiet
        think Let me make sure all tests pass. | quiet
        ",
    );
}

#[test]
fn a_part_of_the_tests_passes() {
    check(
        "claim_contradiction",
        "
        bash pytest -q => 40 passed, 3 failed in 9.7s | quiet
        think 40 tests pass, but 3 still fail. | quiet
        think Most of the tests pass, the others time out. | quiet
        ",
    );
}

#[test]
fn failures_that_were_there_before() {
    check(
        "claim_contradiction",
        "
        bash pytest -q => 40 passed, 1 failed in 9.7s | quiet
        bash git stash && pytest -q => 40 passed, 1 failed in 9.7s | quiet
        think The one failure is pre-existing. All tests for my change pass. | quiet
        ",
    );
}

#[test]
fn tests_are_said_not_to_pass() {
    check(
        "claim_contradiction",
        r"
        bash go test ./... => --- FAIL: TestParse (0.00s)\n    parse_test.go:9: boom\nFAIL\nFAIL\tacme/parse\t0.012s | quiet
        think The tests do not pass yet. | quiet
        think The tests never passed on this branch. | quiet
        ",
    );
}

#[test]
fn an_answer_revised_after_new_evidence() {
    check(
        "claim_contradiction",
        r#"
        web_search {"query": "capital of Kazakhstan"} => Almaty was the capital of Kazakhstan until 1997. | quiet
        think The answer is Almaty. | quiet
        web_search {"query": "capital of Kazakhstan today"} => The seat of government moved; today the capital is Astana. | quiet
        think The answer is Astana. | quiet
        "#,
    );
}

#[test]
fn a_belief_revised_after_reading_the_code() {
    check(
        "claim_contradiction",
        r#"
        think The retry counter is reset after every request. | quiet
        read_file {"path": "client.go"} => func (c *Client) Do() {\n  c.retries++\n} | quiet
        think The retry counter is not reset after every request. | quiet
        "#,
    );
}

#[test]
fn a_value_that_changes() {
    check(
        "claim_contradiction",
        "
        think The queue length is 5. | quiet
        think The queue length is 4. | quiet
        think The queue length is 3. | quiet
        ",
    );
}

#[test]
fn a_file_that_was_removed_is_missing() {
    check(
        "claim_contradiction",
        r#"
        read_file {"path": "tmp/repro.py"} => import app\napp.run() | quiet
        bash rm tmp/repro.py => (no output) | quiet
        think repro.py does not exist any more. | quiet
        "#,
    );
}

#[test]
fn a_missing_file_is_said_to_be_missing() {
    check(
        "claim_contradiction",
        r#"
        read_file {"path": "poetry.lock"} => Error: File does not exist: poetry.lock | quiet
        bash ls => pyproject.toml src | quiet
        think poetry.lock does not exist in this project. | quiet
        "#,
    );
}

#[test]
fn whether_a_file_is_missing_is_asked() {
    check(
        "claim_contradiction",
        r#"
        read_file {"path": "app.toml"} => port = 80 | quiet
        think What happens if app.toml does not exist? | quiet
        think The loader falls back to defaults when app.toml is missing. | quiet
        "#,
    );
}

#[test]
fn a_supposition_is_no_statement() {
    check(
        "claim_contradiction",
        "
        think The lock might be held by another thread. | quiet
        think If the lock is not held by another thread, we can go on. | quiet
        think Perhaps the cache is shared between workers, perhaps not. | quiet
        ",
    );
}

#[test]
fn a_new_test_is_red_on_purpose() {
    check(
        "claim_contradiction",
        "
        bash pytest -q => 1 failed, 10 passed | quiet
        think The new test fails as wanted, the 10 existing tests pass. | quiet
        ",
    );
}

#[test]
fn what_was_true_before_the_change() {
    check(
        "claim_contradiction",
        "
        bash pytest -q => 1 failed, 10 passed | quiet
        think Before my change all tests passed. | quiet
        ",
    );
}

#[test]
fn a_file_of_the_same_name_in_another_folder() {
    check(
        "claim_contradiction",
        r#"
        read_file {"path": "api/config.json"} => {"port": 1} | quiet
        bash ls web => index.html main.js | quiet
        think The file web/config.json does not exist. | quiet
        "#,
    );
}

#[test]
fn a_key_is_missing_not_the_file() {
    check(
        "claim_contradiction",
        r#"
        read_file {"path": "api/config.json"} => {"port": 1} | quiet
        think The timeout key is missing in config.json. | quiet
        think In config.json the option does not exist. | quiet
        "#,
    );
}

#[test]
fn a_file_that_had_to_be_created() {
    check(
        "claim_contradiction",
        r#"
        read_file {"path": "a.cfg"} => Error: file not found | quiet
        edit_file {"path": "a.cfg", "content": "x=1"} => ok | quiet
        think a.cfg did not exist, so I created it. | quiet
        "#,
    );
}

#[test]
fn two_options_are_listed() {
    check(
        "claim_contradiction",
        "
        think Option A: the token is stored in the browser. Option B: the token is not stored in the browser. | quiet
        think So, option A, the token is stored in the browser. | quiet
        ",
    );
}

#[test]
fn a_state_changed_by_an_edit() {
    check(
        "claim_contradiction",
        r#"
        think Currently the header is not sent with redirects. | quiet
        edit_file {"path": "a.py", "content": "x"} => ok | quiet
        think Currently the header is sent with redirects. | quiet
        "#,
    );
}
