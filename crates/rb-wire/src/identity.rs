//! Run identity of a request, from its headers and body.
//!
//! Clients send session identifiers in headers or in the body. Without one, the caller looks up a conversation with the
//! same prefix, by the hashes of its messages. Identifiers that are long or not printable ASCII are ignored.

use std::borrow::Cow;

use crate::json::Value;
use crate::request::ParsedRequest;

/// Header with the run identifier.
pub const RUN_HEADER: &str = "x-reasonblocks-run-id";

const MAX_NAME_BYTES: usize = 256;

/// Identifier of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunName {
    /// Source. Equal identifiers of different sources are different runs.
    pub source: Source,
    /// Identifier; `<session>/<agent>` for a sub-agent.
    pub id: String,
    /// Identifier of the parent run, from the same source.
    pub parent: Option<String>,
}

/// Source of a run identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The header [`RUN_HEADER`].
    Header,
    /// Headers of Claude Code.
    ClaudeCode,
    /// Headers of Codex.
    Codex,
    /// Session headers of opencode and other clients.
    Session,
    /// `conversation` in the body, the identifier of the provider.
    Conversation,
    /// `prompt_cache_key` in the body.
    CacheKey,
    /// `metadata.user_id` in the body.
    UserId,
}

/// Returns the run identifier of a request; `header` looks up a header by its lower-case name.
pub fn run_name<'h>(
    header: impl Fn(&str) -> Option<&'h str>,
    request: Option<&ParsedRequest<'_>>,
) -> Option<RunName> {
    let named = |name: &str| header(name).map(str::trim).filter(|name| is_name(name));
    let alone = |source, id: &str| RunName { source, id: id.to_owned(), parent: None };
    if let Some(id) = named(RUN_HEADER) {
        return Some(alone(Source::Header, id));
    }
    if let Some(session) = named("x-claude-code-session-id") {
        let agent = named("x-claude-code-agent-id");
        let elder = named("x-claude-code-parent-agent-id");
        return Some(member(Source::ClaudeCode, session, agent, elder));
    }
    // A Codex thread is one conversation; a session may have several. Older versions send only the session.
    let of_codex = ["thread-id", "thread_id", "session-id", "session_id"];
    let parent_session = named("x-parent-session-id");
    if let Some(id) = of_codex.into_iter().find_map(named) {
        let parent = named("x-codex-parent-thread-id").or(parent_session).map(str::to_owned);
        return Some(RunName { source: Source::Codex, id: id.to_owned(), parent });
    }
    if let Some(id) = named("x-session-id") {
        let parent = parent_session.map(str::to_owned);
        return Some(RunName { source: Source::Session, id: id.to_owned(), parent });
    }
    let request = request?;
    if let Some(id) = request.conversation_id().filter(|id| is_name(id)) {
        return Some(alone(Source::Conversation, &id));
    }
    if let Some(key) = request.fields.cache_key.and_then(Value::text).filter(|key| is_uuid(key)) {
        return Some(alone(Source::CacheKey, &key));
    }
    let user = request.fields.metadata?.get("user_id")?.text()?;
    session_of_user(&user).map(|session| alone(Source::UserId, &session))
}

/// Returns the run of a session, or of an agent in it.
fn member(source: Source, session: &str, agent: Option<&str>, elder: Option<&str>) -> RunName {
    let within = |agent: &str| format!("{session}/{agent}");
    let Some(agent) = agent else {
        return RunName { source, id: session.to_owned(), parent: None };
    };
    let parent = elder.map_or_else(|| session.to_owned(), within);
    RunName { source, id: within(agent), parent: Some(parent) }
}

/// Returns the session in a user id that is JSON, or ends in `_session_<id>` as in older clients.
fn session_of_user(user: &str) -> Option<Cow<'_, str>> {
    let session = match Value::parse(user.as_bytes()).filter(|value| value.is_object()) {
        Some(object) => object.get("session_id")?.text()?,
        None => Cow::Borrowed(user.rsplit_once("_session_")?.1),
    };
    is_name(&session).then_some(session)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.bytes().all(|b| b.is_ascii_graphic())
}

/// Returns whether a cache key is a UUID: other keys may be shared by several conversations.
fn is_uuid(key: &str) -> bool {
    let groups: Vec<&str> = key.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::by_id;

    fn check(
        headers: &[(&str, &str)],
        dialect: &str,
        body: &str,
        expected: Option<(Source, &str, Option<&str>)>,
    ) {
        let dialect = by_id(dialect).expect("a dialect");
        let request = ParsedRequest::parse(dialect, "/", body.as_bytes()).expect("a body");
        let find =
            |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let found = run_name(find, Some(&request));
        let found = found.as_ref().map(|run| (run.source, run.id.as_str(), run.parent.as_deref()));
        assert_eq!(found, expected, "{headers:?} {body}");
    }

    const UUID: &str = "01997ea4-a70d-7da3-8c20-c736db82a7c5";

    #[test]
    fn headers_name_the_run_before_the_body_does() {
        let body = r#"{"metadata":{"user_id":"{\"session_id\":\"u\"}"}}"#;
        let claude = ("x-claude-code-session-id", "s");
        let cases: [(&[(&str, &str)], _); 12] = [
            (&[claude, ("x-reasonblocks-run-id", " r1 ")], Some((Source::Header, "r1", None))),
            (&[claude], Some((Source::ClaudeCode, "s", None))),
            (
                &[claude, ("x-claude-code-agent-id", "a")],
                Some((Source::ClaudeCode, "s/a", Some("s"))),
            ),
            (
                &[claude, ("x-claude-code-agent-id", "b"), ("x-claude-code-parent-agent-id", "a")],
                Some((Source::ClaudeCode, "s/b", Some("s/a"))),
            ),
            (&[("session-id", "s"), ("thread-id", "t")], Some((Source::Codex, "t", None))),
            (&[("session_id", "s")], Some((Source::Codex, "s", None))),
            (
                &[("thread-id", "t"), ("x-codex-parent-thread-id", "p")],
                Some((Source::Codex, "t", Some("p"))),
            ),
            (
                &[("session_id", "s"), ("x-session-id", "s"), ("x-parent-session-id", "p")],
                Some((Source::Codex, "s", Some("p"))),
            ),
            (&[("x-session-id", "s")], Some((Source::Session, "s", None))),
            (
                &[("x-session-id", "s"), ("x-parent-session-id", "p")],
                Some((Source::Session, "s", Some("p"))),
            ),
            (&[("x-reasonblocks-run-id", "two words")], Some((Source::UserId, "u", None))),
            (&[], Some((Source::UserId, "u", None))),
        ];
        for (headers, expected) in cases {
            check(headers, "anthropic", body, expected);
        }
    }

    #[test]
    fn a_body_names_the_run_if_nobody_else_can_have_the_name() {
        let key = |key: &str| format!(r#"{{"prompt_cache_key":"{key}"}}"#);
        check(&[], "openai-responses", &key(UUID), Some((Source::CacheKey, UUID, None)));
        check(&[], "openai-responses", &key("my-app-v1"), None);
        for kept in [r#"{"conversation":"conv_1"}"#, r#"{"conversation":{"id":"conv_1"}}"#] {
            let expected = Some((Source::Conversation, "conv_1", None));
            check(&[], "openai-responses", kept, expected);
        }
        let user =
            |user: &str| format!(r#"{{"metadata":{{"user_id":{}}}}}"#, crate::json::quoted(user));
        let old = format!("user_ab_account__session_{UUID}");
        check(&[], "anthropic", &user(&old), Some((Source::UserId, UUID, None)));
        for user_id in ["", "somebody", "{\"session_id\":7}", "{\"session_id\":\"\"}", "{"] {
            check(&[], "anthropic", &user(user_id), None);
        }
        check(&[], "anthropic", r#"{"metadata":7}"#, None);
        assert_eq!(run_name(|_| None, None), None);
    }
}
