//! The engine from outside: the walk, its replay, and the suite against a plain re-reading of its rules.

#![expect(clippy::expect_used, reason = "a helper of a test may fail the test")]

mod advice;
mod monitors_page;
mod naive;
mod replay;
mod second_opinion;
mod traces;
mod walk;
