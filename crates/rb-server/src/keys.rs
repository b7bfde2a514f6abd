//! New keys: long, random, shown once and kept as a hash.

use rb_store::KeyRow;

use crate::{auth, clock};

/// Random bytes in a key.
const SECRET_BYTES: usize = 32;
/// Random characters that are shown, to recognise a key by.
const SHOWN_CHARS: usize = 6;

/// What a key is for. Both open the same doors; the name says where it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// For agents at work.
    #[default]
    Live,
    /// For trying things out.
    Test,
}

impl Kind {
    /// What every key of this kind begins with.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Live => "rb_live_",
            Self::Test => "rb_test_",
        }
    }
}

/// The system gave no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the system has no random numbers to make a key of: {0}")]
pub struct NoChance(String);

/// Makes a key for an organisation, limited to a project unless that is empty: the secret, which is shown once, and
/// the row that is kept.
pub fn make(
    kind: Kind,
    org: &str,
    project: &str,
    name: &str,
) -> Result<(String, KeyRow), NoChance> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| NoChance(error.to_string()))?;
    let secret = kind.prefix().to_owned() + &auth::hex(&bytes);
    let shown = secret.chars().take(kind.prefix().len() + SHOWN_CHARS).collect::<String>() + "…";
    let row = KeyRow {
        key_id: format!("key_{}", uuid::Uuid::now_v7().simple()),
        name: name.to_owned(),
        shown,
        hash: auth::hash(&secret),
        org: org.to_owned(),
        project: project.to_owned(),
        created_ms: clock::now_ms(),
        revoked_ms: None,
    };
    Ok((secret, row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_long_random_and_kept_as_a_hash() {
        for (kind, prefix) in [(Kind::Live, "rb_live_"), (Kind::Test, "rb_test_")] {
            let (secret, row) = make(kind, "acme", "", "ci").unwrap();
            let (other, _) = make(kind, "acme", "", "ci").unwrap();
            assert!(secret.starts_with(prefix) && secret.len() == prefix.len() + 64, "{secret}");
            assert_ne!(secret, other);
            assert_eq!(row.hash, auth::hash(&secret));
            assert!(secret.starts_with(row.shown.trim_end_matches('…')));
            assert!(!format!("{row:?}").contains(&secret));
            // The public SDK takes keys of these characters only.
            assert!(secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
        }
    }
}
