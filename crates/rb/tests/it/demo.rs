//! What `rb demo` shows.

use crate::{run, told};

#[test]
fn a_person_sees_both_runs_side_by_side() {
    insta::assert_snapshot!("demo", told(&run(&["demo", "--color", "never"], b"")));
}
