//! Relevance of search results, and the cache.

use super::*;

const FINDINGS: [&str; 16] = [
    "JWT tokens are validated in middleware before every request; expired tokens return 401",
    "The database pool is limited to 10 connections and blocks when exhausted",
    "parse_config silently ignores unknown keys in the TOML file",
    "Tests in test_payments.py need the STRIPE_KEY environment variable or they are skipped",
    "The retry decorator swallows exceptions after the third attempt",
    "CSV export writes dates in local time instead of UTC",
    "User emails are lower-cased on save but compared case sensitively on login",
    "The image resizer leaks file handles when the upload is not a valid image",
    "Celery tasks are not idempotent: a redelivered message charges the customer twice",
    "Migrations must be run before the worker starts, otherwise it crashes with a missing column",
    "The cache key does not include the tenant id so one customer can see another's data",
    "Pagination is off by one: the last item of each page is repeated on the next",
    "Class UserService: create_user, delete_user, reset_password. Handles account lifecycle.",
    "Module http_client.py: wraps requests with timeouts, functions get_json, post_json, with_backoff",
    "Logging is configured in settings.py; debug level prints request bodies including passwords",
    "Feature flags are read once at import time, so changing them needs a restart",
];

/// A question and the finding that answers it.
const QUESTIONS: [(&str, usize); 33] = [
    ("how does authentication work", 0),
    ("where are access tokens checked", 0),
    ("session expiry", 0),
    ("connection pool exhaustion", 1),
    ("database hangs under load", 1),
    ("unknown configuration options", 2),
    ("config file parsing", 2),
    ("why are payment tests skipped", 3),
    ("environment variables needed for tests", 3),
    ("error handling in retries", 4),
    ("exceptions are lost", 4),
    ("timezone bug in export", 5),
    ("wrong dates in csv", 5),
    ("login fails for some users", 6),
    ("email case sensitivity", 6),
    ("file descriptor leak", 7),
    ("too many open files when uploading pictures", 7),
    ("double charging", 8),
    ("background jobs run twice", 8),
    ("worker crash at startup", 9),
    ("database schema migration order", 9),
    ("data leak between tenants", 10),
    ("cache invalidation problem", 10),
    ("duplicate items across pages", 11),
    ("pagination", 11),
    ("where is the password reset", 12),
    ("user account management", 12),
    ("http timeouts and backoff", 13),
    ("how do we make HTTP requests", 13),
    ("secrets in logs", 14),
    ("logging configuration", 14),
    ("toggle a feature without restarting", 15),
    ("feature flags", 15),
];

fn row(id: &str, content: &str) -> FindingRow {
    FindingRow { finding_id: id.to_owned(), content: content.to_owned(), ..FindingRow::default() }
}

fn index() -> CodebaseIndex {
    let rows = FINDINGS.iter().enumerate().map(|(at, text)| row(&at.to_string(), text));
    CodebaseIndex::new(rows.collect(), None)
}

#[test]
fn both_usual_thresholds_are_of_use() {
    let index = index();
    // Threshold, fewest right findings shown, most others shown.
    for (score_min, right_min, others_max) in [(0.25, 31, 7), (0.5, 22, 0)] {
        let (mut right, mut others) = (0, 0);
        for (question, answer) in QUESTIONS {
            for found in index.search(question, 5, score_min) {
                assert!(found.score >= score_min - 0.001, "{question}: {found:?}");
                if found.finding.finding_id == answer.to_string() {
                    right += 1;
                } else {
                    others += 1;
                }
            }
        }
        assert!(right >= right_min && others <= others_max, "{score_min}: {right} and {others}");
    }
}

#[test]
fn unrelated_findings_are_not_returned() {
    for question in ["chocolate cake recipe", "who won the football match", "paint the fence", ""] {
        assert_eq!(index().search(question, 5, 0.25), Vec::new(), "{question}");
    }
    // At 0 everything is, best first.
    let all = index().search("paint the fence", 50, 0.0);
    assert_eq!(all.len(), FINDINGS.len());
    assert!(all.is_sorted_by(|one, next| one.score >= next.score));
}

#[test]
fn only_what_changed_is_embedded_anew() {
    let before =
        CodebaseIndex::new(vec![row("a", "disk is full"), row("b", "session expiry")], None);
    let after = vec![row("a", "the clock runs slow"), row("c", "paint the fence")];
    let after = CodebaseIndex::new(after, Some(&before));
    let found = |question: &str| {
        let found = after.search(question, 5, 0.25);
        found.into_iter().map(|found| found.finding.finding_id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(found("disk is full"), Vec::<String>::new());
    assert_eq!(found("session expiry"), Vec::<String>::new());
    assert_eq!(found("the clock is slow"), ["a"]);
    assert_eq!(found("painting a fence"), ["c"]);
    assert_eq!(after.vectors.len(), 2);
}

#[test]
fn memory_is_bounded_and_the_longest_unused_goes_first() {
    let start = Instant::now();
    let one = CodebaseIndex::new(vec![row("a", &"word ".repeat(1_000))], None).bytes;
    let mut codebases = BTreeMap::new();
    for at in 0..10_u32 {
        let index = CodebaseIndex::new(vec![row("a", &"word ".repeat(1_000))], None);
        let used_at = start + Duration::from_secs(u64::from(10 - at));
        let name = ("acme".to_owned(), at.to_string());
        codebases.insert(name, CacheEntry { index: Arc::new(index), read_at: None, used_at });
    }
    evict(&mut codebases, 3 * one);
    let left: Vec<_> = codebases.keys().map(|(_, codebase)| codebase.as_str()).collect();
    assert_eq!(left, ["0", "1", "2"]);
    evict(&mut codebases, 0);
    assert!(codebases.is_empty());
}
