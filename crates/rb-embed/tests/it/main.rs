//! What must hold for any text and any set of vectors.

mod properties;
