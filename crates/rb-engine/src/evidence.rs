//! Evidence for a score: the steps, names and counts behind it.

use crate::analysis::text::shown;
use crate::step::StepIndex;

/// Maximum number of cited steps: the first and the most recent ones.
pub const EVIDENCE_STEPS_MAX: usize = 6;

/// Evidence for a score. Every score above zero has one.
///
/// Names are short and on one line. Output of tools is never included.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evidence {
    /// Type of the evidence, in snake case.
    pub kind: &'static str,
    /// The steps involved, in order.
    pub steps: Vec<StepIndex>,
    /// Number of occurrences.
    pub count: u32,
    /// The number at which the score is full, if there is one.
    pub limit: Option<u32>,
    /// Number of advices of the same monitor that were shown before.
    pub earlier: u32,
    /// The tool involved.
    pub tool: Option<Box<str>>,
    /// The file involved.
    pub path: Option<Box<str>>,
    /// The words involved: always the agent's or the engine's, never those of a tool.
    pub phrase: Option<Box<str>>,
}

impl Evidence {
    /// Creates evidence with a count.
    pub fn new(kind: &'static str, count: u32) -> Self {
        Self { kind, count, ..Self::default() }
    }

    /// Sets the steps involved, limited to the first and the most recent ones.
    #[must_use]
    pub fn at(mut self, steps: impl IntoIterator<Item = StepIndex>) -> Self {
        self.steps = steps.into_iter().collect();
        self.steps.dedup();
        if self.steps.len() > EVIDENCE_STEPS_MAX {
            self.steps.drain(1..=self.steps.len() - EVIDENCE_STEPS_MAX);
        }
        self
    }

    /// Sets the number at which the score is full.
    #[must_use]
    pub fn of(self, limit: u32) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// Sets the tool involved.
    #[must_use]
    pub fn tool(self, tool: &str) -> Self {
        Self { tool: name(tool), ..self }
    }

    /// Sets the file involved.
    #[must_use]
    pub fn path(self, path: &str) -> Self {
        Self { path: name(path), ..self }
    }

    /// Sets the words involved.
    #[must_use]
    pub fn phrase(self, phrase: &str) -> Self {
        Self { phrase: name(phrase), ..self }
    }

    /// Reports whether it continues after an advice was shown, which calls for a plainer wording.
    pub fn is_repeated(&self) -> bool {
        self.earlier > 0
    }

    /// Formats the steps: "step 4", "steps 4 and 7", "steps 4, 7 and 9".
    pub fn steps_in_words(&self) -> String {
        match self.steps.as_slice() {
            [] => "this run".to_owned(),
            [only] => format!("step {only}"),
            [most @ .., last] => {
                let most: Vec<String> = most.iter().map(ToString::to_string).collect();
                format!("steps {} and {last}", most.join(", "))
            }
        }
    }

    /// Formats the range of the steps: "steps 3 to 7", or "step 3" for a single one.
    pub fn span_in_words(&self) -> String {
        match (self.steps.first(), self.steps.last()) {
            (Some(first), Some(last)) if first != last => format!("steps {first} to {last}"),
            _ => self.steps_in_words(),
        }
    }
}

fn name(text: &str) -> Option<Box<str>> {
    let short = shown(text);
    (!short.is_empty()).then(|| short.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_bounded_and_read_well() {
        let cases = [
            (vec![], "this run", "this run"),
            (vec![4], "step 4", "step 4"),
            (vec![4, 4], "step 4", "step 4"),
            (vec![4, 7], "steps 4 and 7", "steps 4 to 7"),
            (vec![1, 2, 3, 4, 5, 6, 7, 8], "steps 1, 4, 5, 6, 7 and 8", "steps 1 to 8"),
        ];
        for (steps, words, span) in cases {
            let evidence = Evidence::new("x", 1).at(steps.into_iter().map(StepIndex));
            assert_eq!(
                (evidence.steps_in_words().as_str(), evidence.span_in_words().as_str()),
                (words, span)
            );
        }
    }
}
