//! Model routing: a state of the run may select a model.

use crate::policy::fsm::State;

/// Map from states to model ids. States without an entry keep the model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Routing([Option<String>; State::ALL.len()]);

/// Invalid routes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RoutingError {
    /// The state does not exist.
    #[error(
        "`routing.{name}`: there is no state of that name; the states are INIT, FAST, NORMAL, SLOW, SKIP and END"
    )]
    UnknownState {
        /// The given name.
        name: String,
    },
    /// The model id is blank.
    #[error("`routing.{state}` names no model; give a model id or leave the state out")]
    NoModel {
        /// The state.
        state: State,
    },
}

impl Routing {
    /// Creates a map from pairs of state name and model id.
    pub fn from_names<'a>(
        routes: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, RoutingError> {
        let mut routing = Self::default();
        for (name, model) in routes {
            let state = State::from_name(name)
                .ok_or_else(|| RoutingError::UnknownState { name: name.to_owned() })?;
            if model.trim().is_empty() {
                return Err(RoutingError::NoModel { state });
            }
            routing.0[state as usize] = Some(model.to_owned());
        }
        Ok(routing)
    }

    /// Returns the model for a state; `None` keeps the model.
    pub fn model_for(&self, state: State) -> Option<&str> {
        self.0[state as usize].as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_name_models() {
        let routing =
            Routing::from_names([("SLOW", "strong"), ("SKIP", "strong")]).expect("good routes");
        assert_eq!(
            State::ALL.map(|state| routing.model_for(state)),
            [None, None, None, Some("strong"), Some("strong"), None]
        );
        let message = |name, model| {
            Routing::from_names([(name, model)]).expect_err("a bad route").to_string()
        };
        assert_eq!(
            message("slow", "x"),
            "`routing.slow`: there is no state of that name; the states are INIT, FAST, NORMAL, SLOW, SKIP and END"
        );
        assert_eq!(
            message("FAST", " "),
            "`routing.FAST` names no model; give a model id or leave the state out"
        );
    }
}
