//! The one list of the read methods of the area traits, for wrappers around a store.

/// Calls a macro with the methods of all areas of reads of [`Store`](crate::Store), as `Area { method(…) -> …; }`.
///
/// A wrapper implements each area with this list, so a method that is missing here does not compile.
#[macro_export]
macro_rules! for_each_store_read {
    ($callback:ident) => {
        $callback! {
            Runs {
                run(scope: &$crate::Scope, run_id: &str) -> Option<$crate::RunRow>;
                steps(run: &$crate::RunKey, from_index: u32, count_max: u32)
                    -> Vec<$crate::StepRow>;
            }
            RunLists {
                runs(scope: &$crate::Scope, filter: &$crate::RunFilter) -> Vec<$crate::RunRow>;
                health(scope: &$crate::Scope, since_ms: i64) -> $crate::Health;
                experiments(scope: &$crate::Scope) -> Vec<(String, u64)>;
                experiment(scope: &$crate::Scope, id: &str) -> Vec<$crate::ExperimentRun>;
            }
            Library {
                patterns(scope: &$crate::Scope, filter: &$crate::PatternFilter)
                    -> Vec<$crate::PatternRow>;
                pattern(org: &str, tier: &str, pattern_id: &str) -> Option<$crate::PatternRow>;
                pattern_changes(after_version: u64, count_max: u32)
                    -> Vec<(u64, $crate::PatternChange)>;
                findings(org: &str, codebase: &str) -> Vec<$crate::FindingRow>;
                codebases(scope: &$crate::Scope) -> Vec<String>;
                profiles(scope: &$crate::Scope) -> Vec<$crate::ProfileRow>;
            }
            Keys {
                keys() -> Vec<$crate::KeyRow>;
                key(hash: &str) -> Option<$crate::KeyRow>;
                usage(org: &str, since_day: i64) -> Vec<$crate::UsageDay>;
                setting(name: &str) -> Option<String>;
                settings() -> Vec<(String, String)>;
                orgs() -> Vec<String>;
            }
            Conversations {
                conversations(after: Option<&$crate::RunKey>, count_max: u32)
                    -> Vec<$crate::ConversationRow>;
                conversation(run: &$crate::RunKey) -> Option<String>;
                find_conversation(org: &str, by: $crate::ConversationKey, any_of: &[String])
                    -> Option<String>;
            }
            OperatorMessages {
                operator_messages(run: &$crate::RunKey) -> Vec<$crate::OperatorMessageRow>;
                runs_with_messages(since_ms: i64) -> Vec<$crate::RunKey>;
            }
        }
    };
}
