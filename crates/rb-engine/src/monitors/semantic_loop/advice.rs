//! Advice texts of `semantic_loop`.

use crate::evidence::Evidence;

/// Advice for the first alarm of a kind; [`plainer_advice`] after that.
pub(super) fn advice(seen: &Evidence) -> String {
    if seen.is_repeated() {
        return plainer_advice(seen);
    }
    let steps = seen.steps_in_words();
    let tool = seen.tool.as_deref().map_or_else(String::new, |tool| format!(" (`{tool}`)"));
    match seen.kind {
        "reworded" => format!(
            "{steps} look for the same thing in different words, and none brought anything new. The answer may not be \
             there. It may help to question the assumption behind the search, look somewhere else, or go on with what \
             is known."
        ),
        "cycle" => format!(
            "{} have gone round the same {} acts {} times with the same answers. It may help to write down what the round \
             was meant to find out, and to take one step that is not part of it.",
            seen.span_in_words(),
            seen.limit.unwrap_or_default(),
            seen.count
        ),
        "same_error" => format!(
            "{} attempts ended in the same kind of error ({steps}). Trying further variations may not help. It may help to \
             read the first error closely, find out what it depends on, and test that alone.",
            seen.count
        ),
        "back_and_forth" => format!(
            "the newest edits of `{}` undo each other ({steps}). It may help to decide which version is wanted and why, to \
             check that one, and to look for the cause elsewhere if neither works.",
            seen.path.as_deref().unwrap_or("the same file")
        ),
        "no_news" => format!(
            "the last {} looks showed nothing that was not known already ({}). It may be time to decide with what is known, \
             or to name the one fact that is missing and where it could be.",
            seen.count,
            seen.span_in_words()
        ),
        "said_again" => format!(
            "the same message was given {} times ({steps}). If it did not have the effect it was meant to have, it may help \
             to say what is needed in another way, or to do the next step oneself.",
            seen.count
        ),
        _ => format!(
            "the same act{tool} gave the same answer {} times with no change between ({steps}). Doing it again is unlikely to \
             show anything else. It may help to use what the answer says, change something first, or look elsewhere.",
            seen.count
        ),
    }
}

/// Wording for use after a first notice: the cost, and ways out.
fn plainer_advice(seen: &Evidence) -> String {
    let steps = seen.steps_in_words();
    match seen.kind {
        "reworded" => format!(
            "{steps} search for the same thing in yet other words, after an earlier notice, and still nothing new came \
             back. Further wordings will very likely find nothing either. Ways out: take it as not there and say so, or find \
             out who creates the thing and start from that end."
        ),
        "cycle" => format!(
            "the same round of {} acts goes on after an earlier notice ({} rounds, {}), with the same answers each time. \
             Another round will end as the last one did. Ways out: drop the assumption that starts the round, or report where \
             it is stuck and what was tried.",
            seen.limit.unwrap_or_default(),
            seen.count,
            seen.span_in_words()
        ),
        "same_error" => format!(
            "the same kind of error came {} more times after an earlier notice ({steps}). What was varied is probably not what \
             causes it. Ways out: go back to the last state that worked, reduce it to the smallest case that still fails, or \
             report it as open.",
            seen.count
        ),
        "back_and_forth" => format!(
            "`{}` is still being changed to and fro after an earlier notice ({steps}), so the work does not move. Ways out: \
             write one check that tells the two versions apart and keep the one that passes, or leave the file and report what \
             speaks for either.",
            seen.path.as_deref().unwrap_or("the same file")
        ),
        "no_news" => format!(
            "{} further looks after an earlier notice showed nothing new ({}). Looking has stopped paying. Ways out: act on \
             the best reading of what is known and see what happens, or say which question stays open.",
            seen.count,
            seen.span_in_words()
        ),
        "said_again" => format!(
            "the same message went out {} more times after an earlier notice ({steps}), and nothing came of it. Ways out: ask \
             for one concrete thing, do what can be done without an answer, or close with what is missing.",
            seen.count
        ),
        _ => format!(
            "the same act is repeated after an earlier notice, {} times by now, and the answer stays the same ({steps}). No \
             repetition will change it. Ways out: work with that answer as it is, change what it depends on, or report that this \
             way is closed.",
            seen.count
        ),
    }
}
