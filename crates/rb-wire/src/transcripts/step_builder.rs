//! Conversion of a conversation to steps, including the assignment of tool results to their calls.
//!
//! A conversation is a sequence of `Event`s. A turn of the model becomes one step per tool call, or a single step
//! if it contains only text. The text and token counts of a turn are attached to its first step. A result is
//! assigned to the call with the same id; without ids, to the oldest pending call of that tool, or to the oldest
//! pending call. A user message is attached to the step that follows it; the first one is the task.

use std::borrow::Cow;

use crate::model::owned;
use crate::model::{RecordedUsage, Run, RunInput, RunStep};

/// Maximum number of calls that wait for a result; beyond it, the oldest are dropped.
const WAITING_MAX: usize = 1024;

type Text<'a> = Cow<'a, str>;

/// Event of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Event<'a> {
    /// Text of a user message.
    User(Text<'a>),
    /// Start of a model turn.
    Begin(Turn<'a>),
    /// Visible text of the model.
    Says(Text<'a>),
    /// Reasoning of the model.
    Reasons(Text<'a>),
    /// Tool call.
    Calls(Call<'a>),
    /// Tool result.
    Answers(Answer<'a>),
}

/// Metadata of a model turn.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Turn<'a> {
    /// Consecutive turns with the same id are one turn.
    pub(super) id: Option<Text<'a>>,
    pub(super) at_ms: Option<u64>,
    pub(super) agent: Option<Text<'a>>,
    pub(super) model: Option<Text<'a>>,
    pub(super) usage: RecordedUsage,
    pub(super) cost_usd: Option<f64>,
}

impl Turn<'_> {
    /// Updates the fields that are set in `other` and keeps the rest.
    fn know_more(&mut self, other: Self) {
        self.id = other.id.or(self.id.take());
        self.at_ms = other.at_ms.or(self.at_ms);
        self.agent = other.agent.or(self.agent.take());
        self.model = other.model.or(self.model.take());
        self.cost_usd = other.cost_usd.or(self.cost_usd);
        if !other.usage.is_unknown() {
            self.usage = other.usage;
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Call<'a> {
    pub(super) id: Option<Text<'a>>,
    pub(super) tool: Text<'a>,
    pub(super) input: RunInput<'a>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Answer<'a> {
    pub(super) id: Option<Text<'a>>,
    pub(super) tool: Option<Text<'a>>,
    pub(super) text: Text<'a>,
    pub(super) is_error: bool,
}

impl Event<'_> {
    /// Returns the event with all texts owned.
    pub(super) fn into_owned(self) -> Event<'static> {
        match self {
            Self::User(text) => Event::User(owned(text)),
            Self::Says(text) => Event::Says(owned(text)),
            Self::Reasons(text) => Event::Reasons(owned(text)),
            Self::Begin(turn) => Event::Begin(Turn {
                id: turn.id.map(owned),
                at_ms: turn.at_ms,
                agent: turn.agent.map(owned),
                model: turn.model.map(owned),
                usage: turn.usage,
                cost_usd: turn.cost_usd,
            }),
            Self::Calls(call) => Event::Calls(Call {
                id: call.id.map(owned),
                tool: owned(call.tool),
                input: call.input.into_owned(),
            }),
            Self::Answers(answer) => Event::Answers(Answer {
                id: answer.id.map(owned),
                tool: answer.tool.map(owned),
                text: owned(answer.text),
                is_error: answer.is_error,
            }),
        }
    }
}

/// Tool call without a result yet.
#[derive(Debug)]
struct Waiting<'a> {
    id: Option<Text<'a>>,
    step: usize,
}

/// Builds the steps of one conversation.
#[derive(Debug, Default)]
pub(super) struct StepBuilder<'a> {
    /// First user message.
    pub(super) task: Option<Text<'a>>,
    /// Number of results without a matching call.
    pub(super) lost_answers: usize,
    steps: Vec<RunStep<'a>>,
    waiting: Vec<Waiting<'a>>,
    /// User messages since the last step.
    asked: Text<'a>,
    /// Current turn and the index of its first step.
    turn: Turn<'a>,
    turn_start: usize,
    is_speaking: bool,
    says: Text<'a>,
    reasons: Text<'a>,
}

impl<'a> StepBuilder<'a> {
    pub(super) fn take(&mut self, event: Event<'a>) {
        match event {
            Event::User(text) => self.user(text),
            Event::Begin(turn) => self.begin(turn),
            Event::Says(text) => {
                self.go_on();
                append(&mut self.says, text);
            }
            Event::Reasons(text) => {
                self.go_on();
                append(&mut self.reasons, text);
            }
            Event::Calls(call) => self.call(call),
            Event::Answers(answer) => {
                self.lost_answers += usize::from(self.answer(answer).is_err());
            }
        }
    }

    pub(super) fn take_all(&mut self, events: impl IntoIterator<Item = Event<'a>>) {
        for event in events {
            self.take(event);
        }
    }

    fn user(&mut self, text: Text<'a>) {
        self.close();
        if text.trim().is_empty() {
            return;
        }
        self.task.get_or_insert_with(|| text.clone());
        append(&mut self.asked, text);
    }

    fn begin(&mut self, turn: Turn<'a>) {
        if self.is_speaking && turn.id.is_some() && turn.id == self.turn.id {
            self.spent(turn.usage, turn.cost_usd);
            return;
        }
        let is_empty =
            self.says.is_empty() && self.reasons.is_empty() && self.steps.len() == self.turn_start;
        if self.is_speaking && is_empty {
            // The open turn is empty, so the metadata of both turns is merged.
            return self.turn.know_more(turn);
        }
        self.close();
        self.is_speaking = true;
        self.turn_start = self.steps.len();
        self.turn = turn;
    }

    /// Continues the current turn, or begins one without metadata.
    pub(super) fn go_on(&mut self) {
        if !self.is_speaking {
            self.begin(Turn::default());
        }
    }

    /// Returns `true` if a model turn is open.
    pub(super) fn is_speaking(&self) -> bool {
        self.is_speaking
    }

    /// Returns the number of steps, without the open text.
    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Sets the token usage and cost of the current turn.
    pub(super) fn spent(&mut self, usage: RecordedUsage, cost_usd: Option<f64>) {
        let first = self.steps.get_mut(self.turn_start);
        let (of_turn, cost) = match first {
            Some(step) => (&mut step.usage, &mut step.cost_usd),
            None => (&mut self.turn.usage, &mut self.turn.cost_usd),
        };
        if !usage.is_unknown() {
            *of_turn = usage;
        }
        *cost = cost_usd.or(*cost);
    }

    fn call(&mut self, call: Call<'a>) {
        self.go_on();
        // Calls without a complete tool name are ignored.
        if call.tool.is_empty() {
            return;
        }
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.remove(0);
        }
        self.waiting.push(Waiting { id: call.id, step: self.steps.len() });
        let thought = self.thought();
        self.push(RunStep { thought, tool: call.tool, input: call.input, ..RunStep::default() });
    }

    /// Takes the text of the model since its last call, or the reasoning if there is no text.
    fn thought(&mut self) -> Text<'a> {
        let (says, reasons) = (std::mem::take(&mut self.says), std::mem::take(&mut self.reasons));
        if says.trim().is_empty() { reasons } else { says }
    }

    fn push(&mut self, step: RunStep<'a>) {
        let is_first = self.steps.len() == self.turn_start;
        let turn = &mut self.turn;
        self.steps.push(RunStep {
            user_input: std::mem::take(&mut self.asked),
            at_ms: turn.at_ms,
            agent: turn.agent.clone(),
            model: turn.model.clone(),
            usage: if is_first { turn.usage } else { RecordedUsage::default() },
            cost_usd: turn.cost_usd.filter(|_| is_first),
            ..step
        });
    }

    /// Ends the turn; text without a call becomes a separate step.
    fn close(&mut self) {
        if !std::mem::take(&mut self.is_speaking) {
            return;
        }
        let thought = self.thought();
        if !thought.trim().is_empty() {
            self.push(RunStep { thought, ..RunStep::default() });
        }
    }

    /// Assigns a result to its call, or returns it if there is no matching pending call.
    pub(super) fn answer(&mut self, answer: Answer<'a>) -> Result<(), Answer<'a>> {
        self.close();
        let Some(at) = self.waits_for(&answer) else { return Err(answer) };
        let waiting = self.waiting.remove(at);
        let Some(step) = self.steps.get_mut(waiting.step) else { return Err(answer) };
        step.observation = answer.text;
        step.is_error = answer.is_error;
        Ok(())
    }

    fn waits_for(&self, answer: &Answer<'a>) -> Option<usize> {
        let with_id = answer.id.as_ref().and_then(|id| {
            self.waiting.iter().rposition(|waiting| waiting.id.as_ref() == Some(id))
        });
        if with_id.is_some() {
            return with_id;
        }
        let is_open = |waiting: &Waiting<'a>| answer.id.is_none() || waiting.id.is_none();
        let tool = |waiting: &Waiting<'a>| self.steps.get(waiting.step).map(|step| &step.tool);
        match &answer.tool {
            Some(name) => self.waiting.iter().position(|it| is_open(it) && tool(it) == Some(name)),
            None => self.waiting.iter().position(is_open),
        }
    }

    /// Appends environment output to the last step, for turns without a tool call.
    pub(super) fn remark(&mut self, text: Text<'a>) {
        self.close();
        if let Some(step) = self.steps.last_mut() {
            append(&mut step.observation, text);
        }
    }

    /// Ends the open turn and returns all steps.
    pub(super) fn finish(mut self) -> Vec<RunStep<'a>> {
        self.close();
        self.steps
    }

    /// Builds the run; fields that `run` lacks are derived from the steps.
    pub(super) fn into_run(mut self, run: Run<'a>) -> Run<'a> {
        let task = run.task.or_else(|| self.task.take());
        let steps = self.finish();
        let sum = || steps.iter().fold(RecordedUsage::default(), |sum, step| sum.plus(step.usage));
        let usage = if run.usage.is_unknown() { sum() } else { run.usage };
        let costs = || steps.iter().filter_map(|step| step.cost_usd);
        let cost_usd = run.cost_usd.or_else(|| costs().reduce(|sum, cost| sum + cost));
        let times = || steps.iter().filter_map(|step| step.at_ms);
        Run {
            task,
            model: run.model.or_else(|| steps.iter().rev().find_map(|step| step.model.clone())),
            started_ms: run.started_ms.or_else(|| times().min()),
            ended_ms: run.ended_ms.or_else(|| times().max()),
            usage,
            cost_usd,
            steps,
            ..run
        }
    }
}

/// Appends a text to another, separated by a line break.
pub(super) fn append<'a>(text: &mut Text<'a>, more: Text<'a>) {
    if text.is_empty() {
        *text = more;
    } else if !more.is_empty() {
        let text = text.to_mut();
        text.push('\n');
        text.push_str(&more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call<'a>(id: &'a str, tool: &'a str) -> Event<'a> {
        let id = (!id.is_empty()).then_some(id.into());
        Event::Calls(Call { id, tool: tool.into(), input: RunInput::None })
    }

    fn answer<'a>(id: &'a str, tool: &'a str, text: &'a str) -> Event<'a> {
        let some = |text: &'a str| (!text.is_empty()).then_some(Cow::from(text));
        Event::Answers(Answer {
            id: some(id),
            tool: some(tool),
            text: text.into(),
            is_error: false,
        })
    }

    fn begin(id: &str, input_tokens: u64) -> Event<'_> {
        let usage = RecordedUsage { input_tokens: Some(input_tokens), ..RecordedUsage::default() };
        Event::Begin(Turn { id: (!id.is_empty()).then_some(id.into()), usage, ..Turn::default() })
    }

    /// Formats each step as one line: user input, thought, action, observation and tokens.
    fn told<'a>(events: impl IntoIterator<Item = Event<'a>>) -> (Vec<String>, usize) {
        let mut builder = StepBuilder::default();
        builder.take_all(events);
        let lost = builder.lost_answers;
        let line = |step: RunStep<'_>| {
            let tokens = step.usage.input_tokens.map(|tokens| format!(" {tokens}"));
            format!(
                "{}|{}|{}|{}{}",
                step.user_input,
                step.thought,
                step.tool,
                step.observation,
                tokens.unwrap_or_default()
            )
        };
        (builder.finish().into_iter().map(line).collect(), lost)
    }

    fn says(text: &str) -> Event<'_> {
        Event::Says(text.into())
    }

    #[track_caller]
    fn check<'a>(events: impl IntoIterator<Item = Event<'a>>, expected: &[&str], lost: usize) {
        assert_eq!(told(events), (expected.iter().map(ToString::to_string).collect(), lost));
    }

    #[test]
    fn a_turn_is_a_step_for_each_call() {
        let user = Event::User("go".into());
        check(
            [
                user,
                begin("", 7),
                says("I look."),
                call("1", "ls"),
                call("2", "cat"),
                answer("2", "", "two"),
                answer("1", "", "one"),
                begin("", 9),
                says("Done."),
            ],
            &["go|I look.|ls|one 7", "||cat|two", "|Done.|| 9"],
            0,
        );
    }

    #[test]
    fn pieces_of_one_turn_are_joined() {
        check(
            [
                begin("m", 1),
                says("I look."),
                begin("m", 5),
                call("1", "ls"),
                answer("1", "", "one"),
            ],
            &["|I look.|ls|one 5"],
            0,
        );
        check([begin("m", 1), says("a"), begin("n", 2), says("b")], &["|a|| 1", "|b|| 2"], 0);
    }

    #[test]
    fn results_without_ids_go_to_the_oldest() {
        check(
            [
                call("", "ls"),
                call("", "cat"),
                call("", "ls"),
                answer("", "cat", "c"),
                answer("", "", "a"),
                answer("x", "ls", "b"),
                answer("", "", "?"),
            ],
            &["||ls|a", "||cat|c", "||ls|b"],
            1,
        );
    }

    #[test]
    fn a_result_with_a_foreign_id_is_lost() {
        check([call("1", "ls"), answer("2", "ls", "?")], &["||ls|"], 1);
    }

    #[test]
    fn reasoning_stands_in_for_silence() {
        let reasons = |text: &'static str| Event::Reasons(text.into());
        check(
            [reasons("hm"), says("yes"), call("", "a"), reasons("so"), call("", "b")],
            &["|yes|a|", "|so|b|"],
            0,
        );
        check([reasons("hm"), Event::User("?".into()), says(" ")], &["|hm||"], 0);
    }

    #[test]
    fn too_many_calls_that_wait_are_given_up() {
        let calls = (0..3000).map(|_| call("", "a"));
        let answers = (0..3000).map(|_| answer("", "", "x"));
        let (steps, lost) = told(calls.chain(answers));
        assert_eq!((steps.len(), lost), (3000, 3000 - WAITING_MAX));
        assert_eq!(steps.last().map(String::as_str), Some("||a|x"));
    }
}
