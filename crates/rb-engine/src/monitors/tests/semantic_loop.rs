//! Repeats, rewordings, rounds and stuck errors; and what only looks like them.

use crate::test_util::check;

#[test]
fn decoration_does_not_hide_a_repeat() {
    check(
        "semantic_loop",
        "
        shell cd /app && npm run lint => src/api.ts(14,7): error TS2322: Type 'string' is not assignable to type 'number'. | quiet
        shell cd /app && npm run lint 2>&1 => src/api.ts(14,7): error TS2322: Type 'string' is not assignable to type 'number'. | quiet
        shell cd /app; npm run lint => src/api.ts(14,7): error TS2322: Type 'string' is not assignable to type 'number'. | quiet
        shell cd /app && npm run lint => src/api.ts(14,7): error TS2322: Type 'string' is not assignable to type 'number'. | FIRED
        ",
    );
}

#[test]
fn the_same_booking_lookup_fires() {
    check(
        "semantic_loop",
        r#"
        get_reservation_details {"reservation_id": "ZFA04Y"} => {"reservation_id": "ZFA04Y", "status": "confirmed", "cabin": "economy"} | quiet
        get_reservation_details {"reservation_id": "ZFA04Y"} => {"reservation_id": "ZFA04Y", "status": "confirmed", "cabin": "economy"} | quiet
        get_reservation_details {"reservation_id": "ZFA04Y"} => {"reservation_id": "ZFA04Y", "status": "confirmed", "cabin": "economy"} | quiet
        get_reservation_details {"reservation_id": "ZFA04Y"} => {"reservation_id": "ZFA04Y", "status": "confirmed", "cabin": "economy"} | FIRED
        "#,
    );
}

#[test]
fn reworded_searches_that_find_nothing_fire_at_the_third() {
    check(
        "semantic_loop",
        r#"
        codebase_search {"query": "session timeout"} => No results found. | quiet
        codebase_search {"query": "session expiry"} => No results found. | quiet
        codebase_search {"query": "session token expiration"} => No results found. | FIRED
        "#,
    );
}

#[test]
fn a_research_agent_rewording_its_question() {
    check(
        "semantic_loop",
        r#"
        web_search {"query": "Marburg river ferry accident 1911 number of victims"} => No results found for this query. | quiet
        web_search {"query": "1911 Marburg ferry accident victims"} => No results found for this query. | quiet
        web_search {"query": "ferry accident Marburg 1911 death toll"} => No results found for this query. | FIRED
        "#,
    );
}

#[test]
fn two_looks_taking_turns_fire_in_the_third_round() {
    check(
        "semantic_loop",
        r#"
        Read {"file_path": "ui/table.js"} => function renderRow(row) {\n  return row.cells.join() | quiet
        Read {"file_path": "ui/list.js"} => export function renderList(items) {\n  return items.map(renderItem) | quiet
        Read {"file_path": "ui/table.js"} => function renderRow(row) {\n  return row.cells.join() | quiet
        Read {"file_path": "ui/list.js"} => export function renderList(items) {\n  return items.map(renderItem) | quiet
        Read {"file_path": "ui/table.js"} => function renderRow(row) {\n  return row.cells.join() | any
        Read {"file_path": "ui/list.js"} => export function renderList(items) {\n  return items.map(renderItem) | FIRED
        "#,
    );
}

#[test]
fn a_round_of_three_pages() {
    check(
        "semantic_loop",
        r#"
        goto {"url": "https://shop.example/cart"} => Your cart is empty. | quiet
        goto {"url": "https://shop.example/login"} => Sign in to see your saved items. | quiet
        goto {"url": "https://shop.example/account"} => You are not signed in. | quiet
        goto {"url": "https://shop.example/cart"} => Your cart is empty. | quiet
        goto {"url": "https://shop.example/login"} => Sign in to see your saved items. | quiet
        goto {"url": "https://shop.example/account"} => You are not signed in. | quiet
        goto {"url": "https://shop.example/cart"} => Your cart is empty. | quiet
        goto {"url": "https://shop.example/login"} => Sign in to see your saved items. | quiet
        goto {"url": "https://shop.example/account"} => You are not signed in. | FIRED
        "#,
    );
}

#[test]
fn the_same_404_for_ever_new_ids() {
    check(
        "semantic_loop",
        r#"
        get_ticket {"id": "4711"} => {"error": "ticket not found", "status": 404} | quiet
        get_ticket {"id": "4712"} => {"error": "ticket not found", "status": 404} | quiet
        get_ticket {"id": "4713"} => {"error": "ticket not found", "status": 404} | quiet
        get_ticket {"id": "4714"} => {"error": "ticket not found", "status": 404} | quiet
        get_ticket {"id": "4715"} => {"error": "ticket not found", "status": 404} | FIRED
        "#,
    );
}

#[test]
fn a_patch_that_never_applies() {
    check(
        "semantic_loop",
        r#"
        apply_patch {"input": "*** Begin Patch\n*** Update File: a.py\n-x = 1\n+x = 2\n*** End Patch"} => Error: Failed to find expected lines in a.py | quiet
        apply_patch {"input": "*** Begin Patch\n*** Update File: a.py\n-x = 1\n+x = 3\n*** End Patch"} => Error: Failed to find expected lines in a.py | quiet
        apply_patch {"input": "*** Begin Patch\n*** Update File: a.py\n-x=1\n+x = 2\n*** End Patch"} => Error: Failed to find expected lines in a.py | quiet
        apply_patch {"input": "*** Begin Patch\n*** Update File: a.py\n- x = 1\n+ x = 2\n*** End Patch"} => Error: Failed to find expected lines in a.py | quiet
        apply_patch {"input": "*** Begin Patch\n*** Update File: a.py\n-x = 1 \n+x = 2\n*** End Patch"} => Error: Failed to find expected lines in a.py | any
        apply_patch {"input": "*** Begin Patch\n*** Update File: a.py\n-x = 1\n+x = 2 \n*** End Patch"} => Error: Failed to find expected lines in a.py | any
        apply_patch {"input": "*** Begin Patch\n*** Update File: a.py\n-x = 1;\n+x = 2\n*** End Patch"} => Error: Failed to find expected lines in a.py | FIRED
        "#,
    );
}

#[test]
fn looks_that_show_nothing_new() {
    check(
        "semantic_loop",
        r#"
        read_file {"path": "app/models.py"} => class User:\n    name: str\n    email: str\nclass Team:\n    members: list | quiet
        read_file {"path": "app/views.py"} => def index(request):\n    return render(request)\ndef detail(request, id):\n    return get(id) | quiet
        bash head -3 app/models.py => class User:\n    name: str\n    email: str | quiet
        bash sed -n '1,2p' app/views.py => def index(request):\n    return render(request) | quiet
        bash grep -n "class" app/models.py => class User:\nclass Team: | quiet
        bash tail -2 app/models.py => class Team:\n    members: list | quiet
        bash cat app/views.py => def index(request):\n    return render(request)\ndef detail(request, id):\n    return get(id) | quiet
        bash grep -n "def" app/views.py => def index(request):\ndef detail(request, id): | quiet
        bash cat app/models.py => class User:\n    name: str\n    email: str\nclass Team:\n    members: list | FIRED
        "#,
    );
}

#[test]
fn the_same_message_is_given_four_times() {
    check(
        "semantic_loop",
        "
        think Let me write the design document now. | quiet
        think Let me write the design document now. | quiet
        think Let me write the design document now. | quiet
        think Let me write the design document now. | FIRED
        ",
    );
}

#[test]
fn a_missing_tool_called_over_and_over() {
    check(
        "semantic_loop",
        r#"
        pdf_to_text {"file": "report.pdf"} => Error: tool pdf_to_text is not available | quiet
        pdf_to_text {"file": "./report.pdf"} => Error: tool pdf_to_text is not available | quiet
        pdf_to_text {"file": "report.pdf", "pages": "1"} => Error: tool pdf_to_text is not available | quiet
        pdf_to_text {"file": "docs/report.pdf"} => Error: tool pdf_to_text is not available | quiet
        pdf_to_text {"path": "report.pdf"} => Error: tool pdf_to_text is not available | FIRED
        "#,
    );
}

#[test]
fn the_same_search_with_other_flags() {
    check(
        "semantic_loop",
        r#"
        bash grep -rn "frobnicate" src => (no output) | quiet
        bash grep -rni "frobnicate" src => (no output) | quiet
        bash grep -rn "frobnicate" src --include=*.py => (no output) | any
        bash rg frobnicate src => (no output) | any
        bash grep -r frobnicate src | head => (no output) | FIRED
        "#,
    );
}

#[test]
fn forbidden_whatever_is_asked() {
    check(
        "semantic_loop",
        r#"
        get_user {"id": 1} => 403 Forbidden | quiet
        get_user {"id": 2} => 403 Forbidden | quiet
        list_users {} => 403 Forbidden | quiet
        get_user {"id": "me"} => 403 Forbidden | quiet
        get_profile {} => 403 Forbidden | FIRED
        "#,
    );
}

#[test]
fn from_wall_to_wall() {
    check(
        "semantic_loop",
        r#"
        move {"direction": "left"} => You hit a wall. | quiet
        move {"direction": "right"} => You hit a wall. | quiet
        move {"direction": "left"} => You hit a wall. | quiet
        move {"direction": "right"} => You hit a wall. | quiet
        move {"direction": "left"} => You hit a wall. | quiet
        move {"direction": "right"} => You hit a wall. | FIRED
        "#,
    );
}

// What must stay silent.

#[test]
fn polling_a_build_whose_output_changes() {
    check(
        "semantic_loop",
        r#"
        bash gh run view 8812 --json status => {"status": "queued"} | quiet
        bash sleep 30 && gh run view 8812 --json status => {"status": "in_progress", "step": "checkout"} | quiet
        bash sleep 30 && gh run view 8812 --json status => {"status": "in_progress", "step": "build"} | quiet
        bash sleep 30 && gh run view 8812 --json status => {"status": "in_progress", "step": "test"} | quiet
        bash sleep 30 && gh run view 8812 --json status => {"status": "completed", "conclusion": "success"} | quiet
        "#,
    );
}

#[test]
fn waiting_with_the_same_answer_each_time() {
    check(
        "semantic_loop",
        "
        bash sleep 60; kubectl get pods -n staging => api-7d9f 0/1 ContainerCreating 0 1m | quiet
        bash sleep 60; kubectl get pods -n staging => api-7d9f 0/1 ContainerCreating 0 1m | quiet
        bash sleep 60; kubectl get pods -n staging => api-7d9f 0/1 ContainerCreating 0 1m | quiet
        bash sleep 60; kubectl get pods -n staging => api-7d9f 0/1 ContainerCreating 0 1m | quiet
        bash sleep 60; kubectl get pods -n staging => api-7d9f 0/1 ContainerCreating 0 1m | quiet
        bash sleep 60; kubectl get pods -n staging => api-7d9f 0/1 ContainerCreating 0 1m | quiet
        ",
    );
}

#[test]
fn a_background_shell_is_asked_for_more() {
    check(
        "semantic_loop",
        r#"
        BashOutput {"bash_id": "b1"} => (no output) | quiet
        BashOutput {"bash_id": "b1"} => (no output) | quiet
        BashOutput {"bash_id": "b1"} => (no output) | quiet
        BashOutput {"bash_id": "b1"} => (no output) | quiet
        BashOutput {"bash_id": "b1"} => (no output) | quiet
        BashOutput {"bash_id": "b1"} => Compiling 212 of 212\nFinished | quiet
        "#,
    );
}

#[test]
fn a_long_file_in_pieces() {
    check(
        "semantic_loop",
        r#"
        view {"path": "core/engine.py", "view_range": [1, 200]} => import os\nclass Engine:\n    def start(self): | quiet
        view {"path": "core/engine.py", "view_range": [200, 400]} => def stop(self):\n    self.flag = False\n    self.join() | quiet
        view {"path": "core/engine.py", "view_range": [400, 600]} => def schedule(self, task):\n    heappush(self.queue, task) | quiet
        view {"path": "core/engine.py", "view_range": [600, 800]} => def _drain(self):\n    while self.queue: | quiet
        view {"path": "core/engine.py", "view_range": [800, 1000]} => class Worker(Thread):\n    daemon = True | quiet
        view {"path": "core/engine.py", "view_range": [1000, 1200]} => def main():\n    Engine().start() | quiet
        "#,
    );
}

#[test]
fn scrolling_down_a_page() {
    check(
        "semantic_loop",
        r#"
        visit_page {"url": "https://en.wikipedia.org/wiki/Tram"} => A tram is a rail vehicle that runs on streets. | quiet
        page_down {} => Horse-drawn trams were used from 1807 in Wales. | quiet
        page_down {} => Steam trams came into use in the 1870s. | quiet
        page_down {} => The first electric line was opened in Lichterfelde. | quiet
        page_down {} => Cable cars survive in San Francisco. | quiet
        page_down {} => Today some 400 cities run trams. | quiet
        "#,
    );
}

#[test]
fn going_through_a_list_of_files() {
    check(
        "semantic_loop",
        "
        bash python tools/convert.py data/jan.csv => wrote data/jan.parquet, 1200 rows | quiet
        bash python tools/convert.py data/feb.csv => wrote data/feb.parquet, 1108 rows | quiet
        bash python tools/convert.py data/mar.csv => wrote data/mar.parquet, 1321 rows | quiet
        bash python tools/convert.py data/apr.csv => wrote data/apr.parquet, 1280 rows | quiet
        bash python tools/convert.py data/may.csv => wrote data/may.parquet, 1311 rows | quiet
        bash python tools/convert.py data/jun.csv => wrote data/jun.parquet, 1290 rows | quiet
        bash python tools/convert.py data/jul.csv => wrote data/jul.parquet, 1402 rows | quiet
        ",
    );
}

#[test]
fn moving_many_files_in_silence() {
    check(
        "semantic_loop",
        "
        bash mv src/a.test.js test/a.test.js => (no output) | quiet
        bash mv src/b.test.js test/b.test.js => (no output) | quiet
        bash mv src/c.test.js test/c.test.js => (no output) | quiet
        bash mv src/d.test.js test/d.test.js => (no output) | quiet
        bash mv src/e.test.js test/e.test.js => (no output) | quiet
        bash mv src/f.test.js test/f.test.js => (no output) | quiet
        bash mv src/g.test.js test/g.test.js => (no output) | quiet
        bash mv src/h.test.js test/h.test.js => (no output) | quiet
        ",
    );
}

#[test]
fn the_same_edit_in_many_files() {
    check(
        "semantic_loop",
        r#"
        str_replace_editor {"command": "str_replace", "path": "pkg/a.go", "old_str": "log.Printf", "new_str": "slog.Info"} => The file pkg/a.go has been edited. | quiet
        str_replace_editor {"command": "str_replace", "path": "pkg/b.go", "old_str": "log.Printf", "new_str": "slog.Info"} => The file pkg/b.go has been edited. | quiet
        str_replace_editor {"command": "str_replace", "path": "pkg/c.go", "old_str": "log.Printf", "new_str": "slog.Info"} => The file pkg/c.go has been edited. | quiet
        str_replace_editor {"command": "str_replace", "path": "pkg/d.go", "old_str": "log.Printf", "new_str": "slog.Info"} => The file pkg/d.go has been edited. | quiet
        str_replace_editor {"command": "str_replace", "path": "pkg/e.go", "old_str": "log.Printf", "new_str": "slog.Info"} => The file pkg/e.go has been edited. | quiet
        str_replace_editor {"command": "str_replace", "path": "pkg/f.go", "old_str": "log.Printf", "new_str": "slog.Info"} => The file pkg/f.go has been edited. | quiet
        "#,
    );
}

#[test]
fn retried_after_a_fix() {
    check(
        "semantic_loop",
        r#"
        bash ./gradlew assemble => FAILURE: Build failed with an exception.\nCould not resolve com.acme:core:2.1 | quiet
        edit_file {"path": "build.gradle", "content": "implementation 'com.acme:core:2.0'"} => ok | quiet
        bash ./gradlew assemble => FAILURE: Build failed with an exception.\nCould not resolve com.acme:util:1.4 | quiet
        edit_file {"path": "build.gradle", "content": "implementation 'com.acme:util:1.3'"} => ok | quiet
        bash ./gradlew assemble => BUILD SUCCESSFUL in 41s | quiet
        "#,
    );
}

#[test]
fn tests_run_again_after_every_edit() {
    check(
        "semantic_loop",
        r#"
        bash pytest -q tests/test_cart.py => 6 passed, 3 failed | quiet
        edit_file {"path": "cart.py", "content": "total = sum(p.price for p in items)"} => ok | quiet
        bash pytest -q tests/test_cart.py => 7 passed, 2 failed | quiet
        edit_file {"path": "cart.py", "content": "total = round(total, 2)"} => ok | quiet
        bash pytest -q tests/test_cart.py => 8 passed, 1 failed | quiet
        edit_file {"path": "cart.py", "content": "return total or 0"} => ok | quiet
        bash pytest -q tests/test_cart.py => 9 passed | quiet
        "#,
    );
}

#[test]
fn a_flaky_test_changes_its_mind() {
    check(
        "semantic_loop",
        r"
        bash go test ./queue -run TestDrain -count=1 => ok  \tacme/queue\t0.412s | quiet
        bash go test ./queue -run TestDrain -count=1 => --- FAIL: TestDrain (0.50s)\n    drain_test.go:31: got 9 want 10\nFAIL\tacme/queue\t0.53s | quiet
        bash go test ./queue -run TestDrain -count=1 => ok  \tacme/queue\t0.398s | quiet
        bash go test ./queue -run TestDrain -count=1 => ok  \tacme/queue\t0.401s | quiet
        bash go test ./queue -run TestDrain -count=1 => --- FAIL: TestDrain (0.50s)\n    drain_test.go:31: got 8 want 10\nFAIL\tacme/queue\t0.55s | quiet
        ",
    );
}

#[test]
fn the_user_asks_to_do_it_again() {
    check(
        "semantic_loop",
        r#"
        user What is the temperature in the server room? | quiet
        read_sensor {"room": "server"} => 21.5 C | quiet
        user And now? | quiet
        read_sensor {"room": "server"} => 21.5 C | quiet
        user Check it once more please. | quiet
        read_sensor {"room": "server"} => 21.5 C | quiet
        user One last time. | quiet
        read_sensor {"room": "server"} => 21.5 C | quiet
        user And again, the fan was just switched on. | quiet
        read_sensor {"room": "server"} => 21.5 C | quiet
        "#,
    );
}

#[test]
fn a_user_who_says_try_again() {
    check(
        "semantic_loop",
        "
        user go on | quiet
        bash make => make: *** [all] Error 2 | quiet
        user go on | quiet
        bash make => make: *** [all] Error 2 | quiet
        user try again | quiet
        bash make => make: *** [all] Error 2 | quiet
        user try again | quiet
        bash make => make: *** [all] Error 2 | quiet
        ",
    );
}

#[test]
fn dice_fall_differently() {
    check(
        "semantic_loop",
        r#"
        roll_dice {"sides": 20} => You rolled 7 | quiet
        roll_dice {"sides": 20} => You rolled 19 | quiet
        roll_dice {"sides": 20} => You rolled 3 | quiet
        roll_dice {"sides": 20} => You rolled 11 | quiet
        "#,
    );
}

#[test]
fn looking_at_the_status_between_commits() {
    check(
        "semantic_loop",
        "
        bash git status --short => M a.py | quiet
        bash git add a.py && git commit -m a => [main 1] a | quiet
        bash git status --short => (no output) | quiet
        bash git checkout -b next => Switched to a new branch | quiet
        bash git status --short => (no output) | quiet
        bash git pull => Already up to date. | quiet
        bash git status --short => (no output) | quiet
        bash git stash => No local changes to save | quiet
        bash git status --short => (no output) | quiet
        ",
    );
}

#[test]
fn a_server_that_takes_its_time() {
    check(
        "semantic_loop",
        "
        bash curl -s localhost:3000/health => curl: (7) Failed to connect to localhost port 3000: Connection refused | quiet
        bash npm start & => [1] 4121 | quiet
        bash curl -s localhost:3000/health => curl: (7) Failed to connect to localhost port 3000: Connection refused | quiet
        bash lsof -i :3000 => (no output) | quiet
        bash curl -s localhost:3000/health => curl: (7) Failed to connect to localhost port 3000: Connection refused | quiet
        bash tail -5 server.log => listening on 3000 | quiet
        bash curl -s localhost:3000/health => ok | quiet
        ",
    );
}

#[test]
fn the_same_question_about_each_folder() {
    check(
        "semantic_loop",
        "
        bash test -f a/LICENSE && echo yes => yes | quiet
        bash test -f b/LICENSE && echo yes => yes | quiet
        bash test -f c/LICENSE && echo yes => yes | quiet
        bash test -f d/LICENSE && echo yes => yes | quiet
        bash test -f e/LICENSE && echo yes => yes | quiet
        bash test -f f/LICENSE && echo yes => yes | quiet
        bash test -f g/LICENSE && echo yes => yes | quiet
        bash test -f h/LICENSE && echo yes => yes | quiet
        ",
    );
}

#[test]
fn searching_for_each_name_of_a_list() {
    check(
        "semantic_loop",
        r#"
        Grep {"pattern": "unusedHelperAlpha", "path": "src"} => No matches found | quiet
        Grep {"pattern": "unusedHelperBeta", "path": "src"} => No matches found | quiet
        Grep {"pattern": "legacyRender", "path": "src"} => No matches found | quiet
        Grep {"pattern": "legacyLayout", "path": "src"} => No matches found | quiet
        "#,
    );
}

#[test]
fn a_customer_found_by_another_identifier() {
    check(
        "semantic_loop",
        r#"
        find_user_id_by_email {"email": "yusuf@example.com"} => Error: user not found | quiet
        find_user_id_by_name_zip {"first_name": "Yusuf", "last_name": "Rossi", "zip": "19122"} => Error: user not found | quiet
        find_user_id_by_email {"email": "yusuf.rossi@example.com"} => yusuf_rossi_9620 | quiet
        "#,
    );
}
