//! Content security policies of generated pages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// Returns a policy that allows this inline style sheet, identified by its hash, and nothing else.
pub fn only_inline_style(style: &str) -> String {
    let hash = STANDARD.encode(Sha256::digest(style.as_bytes()));
    format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_the_hash_of_the_style() {
        let policy = only_inline_style("");
        let hash = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
        assert!(policy.contains(&format!("style-src 'sha256-{hash}'")), "{policy}");
    }
}
