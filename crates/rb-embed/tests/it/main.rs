//! What must hold for any text, any set of vectors and any folder.

// `cfg(test)` always holds here; written out, clippy knows the helpers for what they are.
#[cfg(test)]
mod many;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod sentence_pairs;
#[cfg(test)]
mod sentences;
#[cfg(test)]
mod transformer;
