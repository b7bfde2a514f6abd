//! Integration tests: properties of embedding and search, the transformer, and published quality figures.

// Always true here; it makes clippy treat the modules as test code.
#[cfg(test)]
mod large_index;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod sts_benchmark;
#[cfg(test)]
mod synthetic_sentences;
#[cfg(test)]
mod transformer;
