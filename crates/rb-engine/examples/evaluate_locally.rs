//! Runs the heuristic suite over a few steps without a server: `cargo run -p rb-engine --example evaluate_locally`.

use rb_engine::config::{ConfigError, EngineConfig};
use rb_engine::monitors::SuiteChoice;
use rb_engine::policy::Policy;
use rb_engine::run::MonitorSet;
use rb_engine::step::{Input, Step};

#[expect(clippy::print_stdout, reason = "an example shows something")]
fn main() -> Result<(), ConfigError> {
    let rules = EngineConfig::with_policy(Policy::only(SuiteChoice::Heuristic)).check()?;
    let mut panel = MonitorSet::new(&rules, "");
    for thought in ["Let me look at this", "Hmm, not sure", "Maybe I missed something"] {
        let step =
            Step::thought(thought).with_action("read_file", Input::None).with_observation("...");
        let result = panel.observe(&step);
        let scores: Vec<_> = result.readings.iter().map(|r| (r.monitor.id, r.score)).collect();
        println!("scores {scores:?}\ntotal {}", result.composite); // the weighted composite
        println!("fired {:?}", result.fired().map(|r| r.monitor.id).collect::<Vec<_>>()); // at or above 0.6
    }
    Ok(())
}
