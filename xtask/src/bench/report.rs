//! What a benchmark saw, as a table.

use super::engine::{COLUMNS, LENGTHS, Row};
use crate::out;

/// One mix of texts: a row a length.
pub(super) fn table(rows: &[Row]) {
    let line = |cells: Vec<String>| out::say(&format!("| {} |", cells.join(" | ")));
    let mut head = vec!["at step".to_owned(), "Python".to_owned()];
    for column in &COLUMNS {
        head.push(column.name.to_owned());
        if column.is_compared {
            head.push("ratio".to_owned());
        }
        head.push("memory".to_owned());
    }
    let rule = head.iter().map(|_| "--:".to_owned()).collect();
    line(head);
    line(rule);
    for (row, (length, _)) in rows.iter().zip(LENGTHS) {
        let theirs = row.python;
        let mut cells = vec![whole(length), theirs.map_or("–".to_owned(), duration)];
        for (cell, column) in row.cells.iter().zip(&COLUMNS) {
            cells.push(duration(cell.seconds));
            if column.is_compared {
                cells.push(theirs.map_or("–".to_owned(), |theirs| times(theirs / cell.seconds)));
            }
            cells.push(kilobytes(cell.heap_bytes));
        }
        line(cells);
    }
    out::say("");
}

/// How the last length compares with the first, column by column.
pub(super) fn growth(rows: &[Row]) {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return };
    for ((first, last), column) in first.cells.iter().zip(&last.cells).zip(&COLUMNS) {
        let growth = last.seconds / first.seconds;
        out::say(&format!(
            "{}: step 2,000 costs {growth:.2} times what step 20 costs",
            column.name
        ));
    }
}

/// How the single steps of one long run are spread.
pub(super) fn spread(name: &str, mut seconds: Vec<f64>) {
    seconds.sort_by(f64::total_cmp);
    let at = |share: usize| seconds.get(seconds.len() * share / 100).copied().unwrap_or(f64::NAN);
    out::say(&format!(
        "{name}: single steps of one run of {}: p50 {}, p90 {}, p99 {}",
        whole(seconds.len()),
        duration(at(50)),
        duration(at(90)),
        duration(at(99)),
    ));
}

pub(super) fn whole(number: usize) -> String {
    out::grouped(number.try_into().unwrap_or(u64::MAX))
}

fn kilobytes(bytes: usize) -> String {
    format!("{} KB", whole(bytes.div_ceil(1_000)))
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.1} µs", s * 1e6),
    }
}

fn times(ratio: f64) -> String {
    format!("{}×", out::grouped(format!("{ratio:.0}").parse().unwrap_or_default()))
}
