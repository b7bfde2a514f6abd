//! Writes that concern neither runs nor steps.

use super::table::{Table, into, upsert};
use super::value::{Converted, Value, ValueError};
use super::{Dialect, Statement};
use crate::Change;

/// Returns the statements of a change in order. The affected rows of the change are those of all statements. Fails for
/// changes of runs, which each backend writes in its own way.
pub(crate) fn plain_writes(change: &Change, dialect: Dialect) -> Converted<Vec<Statement<'_>>> {
    Ok(match change {
        Change::PutPattern(row) => {
            // SQLite counts the versions of the library in a trigger on inserts.
            let sql = match dialect {
                Dialect::Sqlite => format!("INSERT OR REPLACE {}", into_of(&**row)),
                Dialect::Postgres => upsert_of(&**row),
            };
            return put(&**row, sql);
        }
        // The conflict target is the id: a second key with the same hash must fail and not replace the first.
        Change::PutKey(row) => return put(&**row, upsert_of(&**row)),
        Change::PutFinding(row) => return put(&**row, upsert_of(&**row)),
        Change::PutProfile(row) => return put(&**row, upsert_of(&**row)),
        Change::PutOperatorMessage(row) => return put(&**row, upsert_of(&**row)),
        Change::DeletePattern { org, tier, pattern_id } => {
            let sql = "DELETE FROM patterns WHERE org = ? AND tier = ? AND pattern_id = ?";
            one(sql, texts([org, tier, pattern_id]))
        }
        Change::UsePatterns { used, at_ms } => {
            let mut used: Vec<_> = used.iter().collect();
            // Row locks are acquired in order of keys.
            used.sort_unstable();
            let sql = "UPDATE patterns SET uses = uses + 1,
                    used_ms = CASE WHEN used_ms > ? THEN used_ms ELSE ? END
                WHERE org = ? AND tier = ? AND pattern_id = ?";
            let mut statements = Vec::with_capacity(used.len());
            for (org, tier, id) in used {
                let mut values = vec![Value::Int(*at_ms), Value::Int(*at_ms)];
                values.extend(texts([org, tier, id]));
                statements.push(statement(sql, values));
            }
            statements
        }
        Change::DeleteFinding { org, codebase, finding_id } => {
            let sql = "DELETE FROM findings WHERE org = ? AND codebase = ? AND finding_id = ?";
            one(sql, texts([org, codebase, finding_id]))
        }
        Change::InvalidateFindings { org, codebase, file_paths } => {
            let sql = "DELETE FROM findings WHERE org = ? AND codebase = ? AND file_path = ?";
            let about = |path| statement(sql, texts([org, codebase, path]));
            file_paths.iter().map(about).collect()
        }
        Change::ClearFindings { org, codebase } => {
            one("DELETE FROM findings WHERE org = ? AND codebase = ?", texts([org, codebase]))
        }
        Change::DeleteProfile { org, project, profile_id } => {
            let sql = "DELETE FROM profiles WHERE org = ? AND project = ? AND profile_id = ?";
            one(sql, texts([org, project, profile_id]))
        }
        Change::RevokeKey { key_id, at_ms } => {
            let sql = "UPDATE keys SET revoked_ms = ? WHERE key_id = ? AND revoked_ms IS NULL";
            one(sql, vec![Value::Int(*at_ms), text(key_id)])
        }
        Change::PutSetting { name, value } => {
            let sql = "INSERT INTO settings (name, value) VALUES (?, ?)
                ON CONFLICT (name) DO UPDATE SET value = excluded.value";
            one(sql, texts([name, value]))
        }
        // Of several nodes, one affects a row; the others wait for its lock and then find none.
        Change::TakeOperatorMessage { run, message_id } => {
            let sql =
                "DELETE FROM operator_messages WHERE org = ? AND run_id = ? AND message_id = ?";
            one(sql, texts([&run.org, &run.run_id, message_id]))
        }
        Change::ExpireOperatorMessages { before_ms } => {
            one("DELETE FROM operator_messages WHERE at_ms < ?", vec![Value::Int(*before_ms)])
        }
        Change::ExpectVersion { .. }
        | Change::StartRun(_)
        | Change::PutStep(_)
        | Change::AmendStep(_)
        | Change::FinishRun { .. }
        | Change::DeleteRun(_)
        | Change::ExpireRuns { .. }
        | Change::SetVersion { .. }
        | Change::SetUsage { .. }
        | Change::PutConversation(_) => return Err(ValueError::NotPlain),
    })
}

fn one<'a>(sql: &str, values: Vec<Value<'a>>) -> Vec<Statement<'a>> {
    vec![statement(sql, values)]
}

fn statement<'a>(sql: &str, values: Vec<Value<'a>>) -> Statement<'a> {
    Statement { sql: sql.to_owned(), values }
}

fn put<T: Table>(row: &T, sql: String) -> Converted<Vec<Statement<'_>>> {
    let mut values = Vec::new();
    row.write(&mut values)?;
    Ok(vec![Statement { sql, values }])
}

fn upsert_of<T: Table>(_: &T) -> String {
    upsert::<T>()
}

fn into_of<T: Table>(_: &T) -> String {
    into::<T>()
}

fn text(text: &str) -> Value<'_> {
    Value::Text(text.into())
}

fn texts<const N: usize>(texts: [&String; N]) -> Vec<Value<'_>> {
    texts.map(|one| text(one)).into()
}
