//! Reader of one step, compatible with the Python reference.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::super::json;
use super::{Key, count, number, usage};
use crate::model::{RunInput, RunStep};

/// Deserialises one step; `None` if it is not an object.
pub(super) struct StepSeed<'m> {
    pub(super) repaired: &'m mut bool,
}

impl<'de> DeserializeSeed<'de> for StepSeed<'_> {
    type Value = Option<RunStep<'de>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StepSeed<'_> {
    type Value = Option<RunStep<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a step, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        const KEYS: [&str; 13] = [
            "thought",
            "action",
            "action_input",
            "observation",
            "is_error",
            "observation_is_error",
            "tool_calls",
            "user_input",
            "at_ms",
            "agent",
            "model",
            "usage",
            "cost_usd",
        ];
        let mut fields = StepFields::default();
        while let Some(key) = map.next_key_seed(Key(&KEYS))? {
            match key {
                "thought" => fields.thought = Some(map.next_value()?),
                "action" => fields.action = Some(map.next_value()?),
                "action_input" => fields.action_input = Some(map.next_value()?),
                "observation" => fields.observation = Some(map.next_value()?),
                "is_error" => fields.is_error = Some(map.next_value()?),
                "observation_is_error" => fields.observation_is_error = Some(map.next_value()?),
                "tool_calls" => fields.tool_calls = Some(map.next_value()?),
                "user_input" => fields.user_input = Some(map.next_value()?),
                "at_ms" => fields.at_ms = Some(map.next_value()?),
                "agent" => fields.agent = Some(map.next_value()?),
                "model" => fields.model = Some(map.next_value()?),
                "usage" => fields.usage = Some(map.next_value()?),
                "cost_usd" => fields.cost_usd = Some(map.next_value()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Some(fields.read(self.repaired)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// Raw fields of a step.
#[derive(Default)]
struct StepFields<'a> {
    user_input: Option<&'a RawValue>,
    thought: Option<&'a RawValue>,
    action: Option<&'a RawValue>,
    tool_calls: Option<&'a RawValue>,
    action_input: Option<&'a RawValue>,
    observation: Option<&'a RawValue>,
    is_error: Option<&'a RawValue>,
    observation_is_error: Option<&'a RawValue>,
    at_ms: Option<&'a RawValue>,
    agent: Option<&'a RawValue>,
    model: Option<&'a RawValue>,
    usage: Option<&'a RawValue>,
    cost_usd: Option<&'a RawValue>,
}

impl<'a> StepFields<'a> {
    fn read(self, repaired: &mut bool) -> RunStep<'a> {
        let mut text = |value: Option<&'a RawValue>| {
            value.and_then(|value| json::text(value, repaired)).unwrap_or_default()
        };
        let (user_input, thought) = (text(self.user_input), text(self.thought));
        let (mut tool, observation) = (text(self.action), text(self.observation));
        let (agent, model) = (text(self.agent), text(self.model));
        if tool.is_empty() {
            let first = self.tool_calls.and_then(|calls| json::first_of_list(calls, repaired));
            tool = first.unwrap_or_default();
        }
        let input = match self.action_input {
            None => RunInput::None,
            Some(value) => match json::text(value, repaired) {
                Some(text) => RunInput::Text(text),
                None if value.get() == "null" => RunInput::None,
                None => RunInput::Structured(Cow::Borrowed(value.get())),
            },
        };
        let is_error =
            [self.is_error, self.observation_is_error].into_iter().flatten().any(json::is_truthy);
        RunStep {
            user_input,
            thought,
            tool,
            input,
            observation,
            is_error,
            at_ms: self.at_ms.and_then(count),
            agent: Some(agent).filter(|agent| !agent.is_empty()),
            model: Some(model).filter(|model| !model.is_empty()),
            usage: self.usage.map(usage).unwrap_or_default(),
            cost_usd: self.cost_usd.and_then(number),
        }
    }
}
