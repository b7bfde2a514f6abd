//! What holds for every request and every answer, whole or damaged.

mod damage;
mod laws;
