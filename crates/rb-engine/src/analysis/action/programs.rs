//! Effects of programs that build, test, run and manage versions, by subcommand.

use super::Kind;
use super::command::Reader;
use super::file_refs::{is_test_file, looks_like_path};

/// Handles a program that is not a text tool.
pub(super) fn classify(reader: &mut Reader<'_, '_>, program: &str) {
    match program {
        "git" | "hg" | "jj" | "svn" => git(reader, program),
        "pytest" | "py.test" | "tox" | "nox" | "nosetests" | "nose2" | "trial" | "jest"
        | "vitest" | "mocha" | "ava" | "rspec" | "phpunit" | "ctest" | "bats" | "karma"
        | "cypress" | "playwright" | "busted" | "runtests.py" | "runtests" | "run_tests.sh"
        | "gotestsum" | "sbt-test" => test(reader, program, "", 1),
        "cargo" | "go" | "npm" | "yarn" | "pnpm" | "bun" | "deno" | "make" | "gmake" | "just"
        | "task" | "mvn" | "mvnw" | "gradle" | "gradlew" | "dotnet" | "bazel" | "mix" | "swift"
        | "zig" | "rake" | "sbt" | "composer" | "ninja" | "meson" | "cmake" | "lein" | "stack"
        | "cabal" | "dune" | "invoke" | "nix" | "ant" => {
            build_tool(reader, program);
        }
        "coverage" if reader.word(1) == "run" => interpreter(reader, "python", 2),
        "coverage" => reader.add_kind(program, Kind::Run),
        "rustc" | "gcc" | "g++" | "cc" | "clang" | "clang++" | "javac" | "tsc" | "mypy"
        | "pyright" | "ruff" | "flake8" | "pylint" | "pyflakes" | "eslint" | "shellcheck"
        | "rustfmt" | "black" | "isort" | "prettier" | "golint" | "sphinx-build" | "pre-commit"
        | "staticcheck" | "golangci-lint" | "ld" | "bandit" | "yamllint" | "hadolint"
        | "stylelint" => {
            reader.add_kind(program, Kind::Run);
            reader.effects.verifies = true;
        }
        "pip" | "pip3" | "apt" | "apt-get" | "brew" | "conda" | "mamba" | "gem" | "apk" | "yum"
        | "dnf" | "uv" | "poetry" | "pipenv" => package_manager(reader, program),
        "docker" | "podman" | "kubectl" | "systemctl" | "service" | "terraform" | "aws"
        | "gcloud" | "az" | "gh" | "heroku" | "helm" | "docker-compose" => control(reader, program),
        "mkdir" | "chmod" | "chown" | "tar" | "zip" | "unzip" | "gzip" | "gunzip" | "kill"
        | "pkill" | "killall" => {
            reader.add_kind(program, Kind::Run);
        }
        "sqlite3" | "psql" | "mysql" | "duckdb" => database(reader, program),
        "scroll_up" | "scroll_down" | "goto" => reader.add_kind(program, Kind::Read),
        "edit" | "insert" | "create" | "str_replace_editor" => reader.add_kind(program, Kind::Edit),
        _ if is_interpreter(program) => interpreter(reader, program, 1),
        _ => unknown(reader, program),
    }
}

fn is_interpreter(program: &str) -> bool {
    let stem = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    matches!(
        stem,
        "python"
            | "pypy"
            | "ipython"
            | "node"
            | "ruby"
            | "php"
            | "Rscript"
            | "julia"
            | "lua"
            | "java"
            | "tsx"
    ) || matches!(program, "ts-node" | "perl")
}

fn git(reader: &mut Reader<'_, '_>, program: &str) {
    let mut at = 1;
    while reader.word(at).starts_with('-') {
        at += if matches!(reader.word(at), "-C" | "-c") { 2 } else { 1 };
    }
    let sub = reader.word(at);
    reader.effects.command(program, sub);
    let paths: Vec<&str> = reader
        .words
        .iter()
        .skip(at + 1)
        .filter(|w| looks_like_path(w))
        .map(AsRef::as_ref)
        .collect();
    let kind = match sub {
        "diff" | "status" | "log" | "show" | "blame" | "ls-files" | "ls-tree" | "branch"
        | "remote" | "tag" | "rev-parse" | "describe" | "shortlog" | "reflog" | "config"
        | "cat-file" | "" => Kind::Read,
        "grep" => Kind::Search,
        "checkout" | "restore" | "switch" if has_file_argument(reader, at) || sub == "restore" => {
            Kind::Edit
        }
        "stash" | "apply" | "am" | "revert" | "cherry-pick" | "merge" | "rebase" | "pull"
        | "clean" => Kind::Edit,
        "reset" if reader.has_option(&["--hard"]) => Kind::Edit,
        "push" => Kind::Change,
        _ => Kind::Run,
    };
    // `git stash list` and `git apply --check` change nothing.
    let looks = (sub == "stash" && matches!(reader.word(at + 1), "list" | "show"))
        || reader.has_option(&["--check", "--dry-run", "--stat"]);
    let kind = if looks && kind == Kind::Edit { Kind::Read } else { kind };
    reader.effects.add_kind(kind);
    if kind == Kind::Edit {
        let undoes = matches!(sub, "checkout" | "restore" | "stash" | "revert" | "reset" | "clean");
        reader.effects.reverts |= undoes && !matches!(reader.word(at + 1), "pop" | "apply");
        if let Some(body) = reader.simple.heredoc {
            super::patch::walk(body, reader.effects);
        }
        for path in &paths {
            reader.effects.write(path);
        }
        return;
    }
    reader.effects.verifies |= sub == "diff";
    if kind == Kind::Search
        && let Some(query) = reader.words.iter().skip(at + 1).find(|word| !word.starts_with('-'))
    {
        reader.effects.add_query(query);
    }
    for path in &paths {
        reader.effects.read(path, None);
    }
}

/// Distinguishes `git checkout -- f` and `git checkout f.py`, which restore a file, from `git checkout branch`.
fn has_file_argument(reader: &Reader<'_, '_>, at: usize) -> bool {
    let words = || reader.words.iter().skip(at + 1);
    words().any(|word| matches!(word.as_ref(), "--" | "."))
        || words().any(|word| looks_like_path(word) && super::file_refs::has_extension(word))
}

fn test(reader: &mut Reader<'_, '_>, program: &str, sub: &str, from: usize) {
    reader.effects.command(program, sub);
    if reader.has_option(&["--version", "--help", "-h", "--collect-only", "--co"]) {
        reader.effects.add_kind(Kind::Read);
        return;
    }
    reader.effects.add_kind(Kind::Test);
    let mut skip_next = false;
    let words: Vec<&str> = reader.words.iter().skip(from).map(AsRef::as_ref).collect();
    for word in &words {
        if std::mem::take(&mut skip_next) || word.is_empty() {
            continue;
        }
        if matches!(
            *word,
            "-k" | "-run" | "--run" | "-t" | "--testNamePattern" | "--filter" | "-g" | "--grep"
        ) {
            continue; // The next word selects tests.
        }
        if word.starts_with('-') {
            #[rustfmt::skip]
            let valued = [
                "-p", "-n", "-c", "-m", "-o", "-W", "--settings", "--parallel", "--package", "--timeout",
                "--maxfail", "--tb", "--verbosity", "-e",
            ];
            skip_next = valued.contains(word);
            continue;
        }
        let whole_number = word.bytes().all(|b| b.is_ascii_digit());
        if !whole_number {
            reader.effects.target(word);
        }
    }
}

fn build_tool(reader: &mut Reader<'_, '_>, program: &str) {
    let mut at = 1;
    while reader.word(at).starts_with(['-', '+']) {
        at += if matches!(reader.word(at), "-C" | "--prefix" | "-f" | "--manifest-path" | "-p") {
            2
        } else {
            1
        };
    }
    if matches!(reader.word(at), "run" | "exec")
        && matches!(program, "npm" | "yarn" | "pnpm" | "bun" | "deno" | "composer")
    {
        at += 1;
    }
    let sub = reader.word(at);
    let makes = matches!(program, "make" | "gmake" | "ninja") && sub == "check";
    let words = sub.split([':', '-', '_', '/']);
    if makes
        || words.clone().any(|w| {
            matches!(w, "test" | "tests" | "t" | "nextest" | "spec" | "e2e" | "unittest" | "citest")
        })
    {
        test(reader, program, sub, at + 1);
        return;
    }
    reader.effects.command(program, sub);
    let changes_packages = matches!(
        sub,
        "install"
            | "i"
            | "ci"
            | "add"
            | "remove"
            | "update"
            | "get"
            | "mod"
            | "init"
            | "new"
            | "fetch"
            | "clean"
            | "upgrade"
            | "uninstall"
            | "restore"
            | "tool"
    );
    let looks = matches!(
        sub,
        "version" | "list" | "ls" | "env" | "doc" | "info" | "view" | "metadata" | "tree"
    );
    reader.effects.add_kind(if looks { Kind::Read } else { Kind::Run });
    // `npm install` prepares the environment; other commands build, check or run the work.
    reader.effects.verifies |= !changes_packages && !looks && !matches!(sub, "publish" | "deploy");
}

fn package_manager(reader: &mut Reader<'_, '_>, program: &str) {
    let sub = reader.word(1);
    reader.effects.command(program, sub);
    let looks =
        matches!(sub, "list" | "show" | "freeze" | "info" | "search" | "check" | "index" | "env");
    reader.effects.add_kind(if looks { Kind::Read } else { Kind::Run });
}

/// Handles tools that manage services: status queries read, other commands change something.
fn control(reader: &mut Reader<'_, '_>, program: &str) {
    let words: Vec<&str> = reader.plain_words().take(2).collect();
    let sub = words.first().copied().unwrap_or("");
    reader.effects.command(program, sub);
    let verb = |names: &[&str]| words.iter().any(|word| names.contains(word));
    let kind = if verb(&["ps", "status", "get", "top", "wait", "watch"]) {
        Kind::Poll
    } else if verb(&[
        "logs", "describe", "inspect", "images", "list", "ls", "show", "view", "diff", "plan",
        "version",
    ]) {
        Kind::Read
    } else if verb(&["build", "run", "validate", "config"]) {
        Kind::Run
    } else {
        Kind::Change
    };
    reader.effects.add_kind(kind);
}

fn database(reader: &mut Reader<'_, '_>, program: &str) {
    let statement = reader.words.iter().skip(1).map(AsRef::as_ref).find(|word| word.contains(' '));
    let statement = statement.or(reader.simple.heredoc);
    let kind = statement.map_or(Kind::Run, super::tools::sql_kind);
    reader.add_kind(program, kind);
    if let Some(statement) = statement {
        reader.effects.add_query(statement);
    }
}

/// Handles `python f`, `python -m m`, `python -c "…"`, `python - <<EOF`.
fn interpreter(reader: &mut Reader<'_, '_>, program: &str, from: usize) {
    let mut at = from;
    while let Some(word) =
        reader.words.get(at).filter(|word| word.starts_with('-') && word.len() > 1)
    {
        match word.as_ref() {
            "-m" => {
                let module = reader.word(at + 1);
                module_run(reader, program, module, at + 2);
                return;
            }
            "-c" | "-e" | "--eval" | "-p" | "-r" => {
                let flag = word.as_ref();
                reader.effects.command(program, flag);
                reader.inline_code(flag);
                reader.product();
                return;
            }
            "--test" => {
                test(reader, program, "--test", at + 1);
                return;
            }
            "-W" | "-X" => at += 2,
            "--version" | "-V" | "--help" => {
                reader.add_kind(program, Kind::Read);
                return;
            }
            _ => at += 1,
        }
    }
    let file = reader.word(at);
    if file.is_empty() || file == "-" {
        reader.effects.command(program, "");
        if !reader.inline_code("-c") {
            reader.effects.run_program();
        }
        reader.product();
        return;
    }
    let name = file.rsplit('/').next().unwrap_or(file);
    if matches!(name, "manage.py" | "setup.py" | "artisan") && reader.word(at + 1) == "test" {
        test(reader, name, "test", at + 2);
        return;
    }
    if matches!(name, "runtests.py" | "runtests" | "run_tests.py" | "test") {
        test(reader, name, "", at + 1);
        return;
    }
    run_script(reader, program, file);
    reader.product();
}

fn module_run(reader: &mut Reader<'_, '_>, program: &str, module: &str, from: usize) {
    match module {
        "pytest" | "unittest" | "nose" | "nose2" | "doctest" | "tox" | "nox" | "twisted.trial"
        | "django" => {
            test(reader, program, &format!("-m {module}"), from);
        }
        "coverage" => interpreter(reader, program, from + usize::from(reader.word(from) == "run")),
        "pip" | "venv" | "ensurepip" => {
            reader.effects.command(program, &format!("-m {module}"));
            reader.effects.add_kind(Kind::Run);
        }
        "json.tool" if reader.simple.piped => {}
        _ => {
            reader.effects.command(program, &format!("-m {module}"));
            reader.effects.run_program();
        }
    }
}

/// Runs a file, which is a test if it is named like one.
pub(super) fn run_script(reader: &mut Reader<'_, '_>, program: &str, file: &str) {
    let name = file.rsplit('/').next().unwrap_or(file);
    reader.effects.command(program, name);
    if is_test_file(file) {
        reader.effects.add_kind(Kind::Test);
        reader.effects.target(file);
    } else {
        reader.effects.run_program();
        reader.effects.read(file, None);
    }
}

/// Handles a program of the project or an unknown one.
fn unknown(reader: &mut Reader<'_, '_>, program: &str) {
    let path = reader.word(0);
    let of_the_project = path.contains('/') || super::file_refs::has_extension(path);
    let is_runner = matches!(program, "test" | "tests" | "runtests" | "run_tests" | "run-tests");
    if path.contains('/') && (is_runner || is_test_file(path)) {
        test(reader, program, "", 1);
        return;
    }
    reader.add_kind(program, Kind::Run);
    reader.effects.verifies |= of_the_project;
    reader.product();
}
