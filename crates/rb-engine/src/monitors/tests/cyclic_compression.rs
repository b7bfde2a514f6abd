//! Summing up and starting over; and summaries that have a reason.

use crate::test_util::check;

#[test]
fn the_third_recap_of_the_same_state_fires() {
    check(
        "cyclic_compression",
        "
        think So far we know that the import fails in loader.py and that the cache is stale. The next step is to fix the loader. | quiet
        think So far we know that the import fails in loader.py and that the cache is stale. Next I will fix the loader. | quiet
        think So far we know that the import in loader.py fails and that the cache is stale. The next step is to fix the loader. | FIRED
        ",
    );
}

#[test]
fn a_recap_before_every_look_that_shows_nothing() {
    check(
        "cyclic_compression",
        r"
        To summarize: the token is issued by auth.ts and refreshed by session.ts. :: bash ls src => auth.ts\nsession.ts | quiet
        To summarize: the token is issued by auth.ts and refreshed by session.ts. :: bash ls src => auth.ts\nsession.ts | quiet
        To summarize: the token is issued by auth.ts and is refreshed by session.ts. :: bash ls src/ => auth.ts\nsession.ts | FIRED
        ",
    );
}

#[test]
fn a_research_agent_lists_its_facts_again_and_again() {
    check(
        "cyclic_compression",
        r#"
        web_search {"query": "author of The Silent Garden novel 1954"} => The Silent Garden was written by Ada Kern and published in 1954. | quiet
        think What we know: the novel is The Silent Garden, written by Ada Kern and published in 1954. We still need the translator. | quiet
        web_search {"query": "The Silent Garden translator"} => No results found. | quiet
        think What we know: the novel is The Silent Garden, written by Ada Kern, published in 1954. We still need the translator. | quiet
        web_search {"query": "Ada Kern Silent Garden translated by"} => No results found. | quiet
        think What we know: the novel is The Silent Garden, written by Ada Kern and published in 1954. We still need the translator. | FIRED
        "#,
    );
}

#[test]
fn a_support_agent_sums_up_three_times() {
    check(
        "cyclic_compression",
        r#"
        get_order {"id": "W1"} => {"id": "W1", "items": ["lamp"], "status": "delivered"} | quiet
        think Let me recap: the customer wants to return the lamp of order W1, which was delivered. I need the payment method. | quiet
        think Let me recap: the customer wants to return the lamp from order W1, which was delivered. I need the payment method. | quiet
        think Let me recap: the customer wants to return the lamp of order W1, which was delivered. I need their payment method. | FIRED
        "#,
    );
}

#[test]
fn acts_done_again_after_a_compaction() {
    check(
        "cyclic_compression",
        r#"
        bash ls => src tests setup.py | quiet
        bash cat setup.py => from setuptools import setup | quiet
        bash grep -rn "timeout" src => src/http.py:8:timeout = 30 | quiet
        bash cat src/http.py => timeout = 30\nretries = 2 | quiet
        bash pytest -q => 2 failed, 8 passed | quiet
        user This session is being continued from a previous conversation that ran out of context. | quiet
        bash ls => src tests setup.py | quiet
        bash cat setup.py => from setuptools import setup | quiet
        bash grep -rn "timeout" src => src/http.py:8:timeout = 30 | quiet
        bash cat src/http.py => timeout = 30\nretries = 2 | FIRED
        "#,
    );
}

#[test]
fn a_json_agent_starts_over_after_its_summary() {
    check(
        "cyclic_compression",
        r#"
        list_directory {"path": "."} => app docs | quiet
        read_file {"path": "app/main.ts"} => import { run } from './run' | quiet
        read_file {"path": "app/run.ts"} => export function run() {} | quiet
        search_files {"pattern": "open points"} => app/run.ts:3: // open points | quiet
        read_file {"path": "docs/plan.md"} => # Plan | quiet
        think The conversation has been summarized. I was asked to finish run.ts. | quiet
        list_directory {"path": "."} => app docs | quiet
        read_file {"path": "app/main.ts"} => import { run } from './run' | quiet
        read_file {"path": "app/run.ts"} => export function run() {} | quiet
        search_files {"pattern": "open points"} => app/run.ts:3: // open points | FIRED
        "#,
    );
}

#[test]
fn a_recap_around_the_same_red_test() {
    check(
        "cyclic_compression",
        "
        think So far: the parser fails on empty input and I do not know why. | quiet
        bash pytest -q => 1 failed, 3 passed | quiet
        think So far: the parser fails on empty input and I still do not know why. | quiet
        bash pytest -q => 1 failed, 3 passed | quiet
        think So far: the parser fails on empty input, and I do not know why. | FIRED
        ",
    );
}

// What must stay silent.

#[test]
fn one_plan() {
    check(
        "cyclic_compression",
        r#"
        think Current state: nothing is done. Plan: read the parser, write a test, fix the bug. | quiet
        read_file {"path": "parser.py"} => def parse(): pass | quiet
        edit_file {"path": "parser.py", "content": "def parse(): return 1"} => ok | quiet
        "#,
    );
}

#[test]
fn a_recap_after_progress() {
    check(
        "cyclic_compression",
        r#"
        think So far: the parser test fails and the lexer is not done. | quiet
        edit_file {"path": "lexer.py", "content": "tokens = []"} => ok | quiet
        bash pytest -q tests/test_lexer.py => 4 passed in 0.1s | quiet
        read_file {"path": "parser.py"} => def parse(tokens):\n    return tokens[0] | quiet
        think So far: the parser test fails, the lexer is done. | quiet
        edit_file {"path": "parser.py", "content": "def parse(tokens): return Tree(tokens)"} => ok | quiet
        bash pytest -q tests/test_parser.py => 6 passed in 0.2s | quiet
        bash git diff --stat => lexer.py | 4 ++--\n parser.py | 2 +- | quiet
        think So far: the parser test passes, the lexer is done. | quiet
        "#,
    );
}

#[test]
fn a_summary_at_the_end() {
    check(
        "cyclic_compression",
        r#"
        edit_file {"path": "a.py", "content": "x = 1"} => ok | quiet
        bash pytest -q => 3 passed in 0.1s | quiet
        think In summary: x is set to 1 and the tests pass. | quiet
        finish {"message": "Summary: x is set to 1 and the tests pass."} => ok | quiet
        "#,
    );
}

#[test]
fn a_plan_restated_to_the_user() {
    check(
        "cyclic_compression",
        "
        think Progress update: I will first migrate the users table, then the orders table. | quiet
        user Can you repeat the plan for my colleague? | quiet
        think Progress update: I will first migrate the users table, then the orders table. | quiet
        ",
    );
}

#[test]
fn each_ticket_has_a_summary_of_its_own() {
    check(
        "cyclic_compression",
        r#"
        get_ticket {"id": 1} => {"id": 1, "subject": "Cannot log in", "priority": "high"} | quiet
        think Summary: ticket 1 is about a failed login and has high priority. | quiet
        get_ticket {"id": 2} => {"id": 2, "subject": "Invoice is wrong", "priority": "low"} | quiet
        think Summary: ticket 2 is about a wrong invoice and has low priority. | quiet
        get_ticket {"id": 3} => {"id": 3, "subject": "Dark mode please", "priority": "low"} | quiet
        think Summary: ticket 3 is a wish for dark mode and has low priority. | quiet
        get_ticket {"id": 4} => {"id": 4, "subject": "App crashes on start", "priority": "urgent"} | quiet
        think Summary: ticket 4 is about a crash on start and is urgent. | quiet
        "#,
    );
}

#[test]
fn getting_oriented_after_a_compaction() {
    check(
        "cyclic_compression",
        r#"
        bash ls => src tests setup.py | quiet
        bash cat src/http.py => timeout = 30\nretries = 2 | quiet
        edit_file {"path": "src/http.py", "content": "timeout = 10"} => ok | quiet
        user This session is being continued from a previous conversation that ran out of context. | quiet
        bash git status --short => M src/http.py | quiet
        bash cat src/http.py => timeout = 10\nretries = 2 | quiet
        bash pytest -q tests/test_http.py => 5 passed in 0.2s | quiet
        edit_file {"path": "src/http.py", "content": "retries = 3"} => ok | quiet
        bash pytest -q => 31 passed in 2.2s | quiet
        "#,
    );
}

#[test]
fn tests_run_again_after_a_compaction() {
    check(
        "cyclic_compression",
        r#"
        edit_file {"path": "src/cart.py", "content": "a"} => ok | quiet
        bash pytest -q => 3 failed, 9 passed | quiet
        user This session is being continued from a previous conversation that ran out of context. | quiet
        bash pytest -q => 3 failed, 9 passed | quiet
        edit_file {"path": "src/cart.py", "content": "b"} => ok | quiet
        bash pytest -q => 2 failed, 10 passed | quiet
        edit_file {"path": "src/cart.py", "content": "c"} => ok | quiet
        bash pytest -q => 1 failed, 11 passed | quiet
        edit_file {"path": "src/cart.py", "content": "d"} => ok | quiet
        bash pytest -q => 12 passed | quiet
        "#,
    );
}

#[test]
fn the_current_state_of_a_machine_is_no_recap() {
    check(
        "cyclic_compression",
        r#"
        think Let me check the current state of the valve controller. | quiet
        get_valve {"id": "v1"} => {"open": false, "pressure": 2.1} | quiet
        think Let me check the current state of the pump controller. | quiet
        get_pump {"id": "p1"} => {"rpm": 1200, "state": "on"} | quiet
        think Let me check the current state of the tank sensors. | quiet
        get_tank {"id": "t1"} => {"level": 0.71, "alarm": null} | quiet
        think Let me check the current state of the main switch. | quiet
        get_switch {"id": "s1"} => {"position": "auto"} | quiet
        "#,
    );
}

#[test]
fn a_summary_of_every_month() {
    check(
        "cyclic_compression",
        "
        think Summary of January: revenue 120, cost 80. | quiet
        sql SELECT sum(x) FROM feb => 98 | quiet
        think Summary of February: revenue 98, cost 70. | quiet
        sql SELECT sum(x) FROM mar => 77 | quiet
        think Summary of March: revenue 77, cost 60. | quiet
        sql SELECT sum(x) FROM apr => 143 | quiet
        think Summary of April: revenue 143, cost 90. | quiet
        ",
    );
}

#[test]
fn a_question_about_compaction() {
    check(
        "cyclic_compression",
        r#"
        user Please explain what "the conversation was compacted" means in our logs and re-read the four files. | quiet
        bash cat a => alpha line | quiet
        bash cat b => beta line | quiet
        bash cat c => gamma line | quiet
        bash cat d => delta line | quiet
        "#,
    );
}
