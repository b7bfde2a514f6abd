//! Prints the cost of embedding and searching: `cargo bench -p rb-embed`.
//!
//! The search is timed next to a plain scan over floats in the same process, because absolute times vary between
//! machines. With `RB_TEST_MINILM` set to a model folder, the transformer is timed as well. As a test
//! (`cargo test --benches`) everything runs once with small inputs.

/// Generator of synthetic sentences.
#[path = "../tests/it/synthetic_sentences.rs"]
mod synthetic_sentences;

use std::hint::black_box;
use std::time::{Duration, Instant};

use rb_embed::{DIMS, Index, Owner, SearchParams, Transformer, Vector, embed};
use synthetic_sentences::Sentences;

/// Number of organisations that share the vectors equally.
const ORGS: u32 = 100;

const TWELVE_PIECES: &str = "the request failed again with the same error as in step 4";

fn main() {
    let small = std::env::args().all(|argument| argument != "--bench");
    let (rows, rounds) = if small { (1_000, 2) } else { (100_000, 200) };
    print_line(&format!("{:<44}{:>12}", "embedding one text", "median"));
    let long = long_text();
    for (name, text) in [("12 pieces", TWELVE_PIECES), ("118 pieces", long.as_str())] {
        let cost = median(rounds * 50, || drop(black_box(embed(black_box(text)))));
        print_line(&format!("  {name:<42}{cost:>12.2?}"));
    }
    transformer_rows(&long, if small { 1 } else { 20 });
    search_table(rows, rounds);
    growth_table(if small { &[1_000] } else { &[10_000, 30_000, 100_000, 300_000, 1_000_000] });
}

/// Cost of a search in one partition by its size.
fn growth_table(sizes: &[u64]) {
    let sentences = Sentences::new();
    let params = SearchParams { max_hits: 2, min_cosine: 0.0 };
    let mut index = Index::new(DIMS);
    print_line(&format!("{:<32}{:>12}{:>12}", "vectors of one owner, best 2", "p50", "p99"));
    let mut next = 0;
    for size in sizes {
        while next < *size {
            let vector = embed(&sentences.sentence(next));
            if let Err(error) = index.insert(Owner::Org(0), next, &vector) {
                return print_line(&error.to_string());
            }
            next += 1;
        }
        let mut times = Vec::new();
        for number in (0..*size).step_by(usize::try_from(size / 200).unwrap_or(1).max(1)) {
            let query = embed(&sentences.rewording(number));
            let start = Instant::now();
            drop(black_box(index.nearest(0, &query, params)));
            times.push(start.elapsed());
        }
        times.sort_unstable();
        let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        print_line(&format!("  {size:<30}{p50:>12.1?}{p99:>12.1?}"));
    }
}

/// Skipped without `RB_TEST_MINILM`.
fn transformer_rows(long: &str, rounds: u32) {
    let Some(folder) = std::env::var_os("RB_TEST_MINILM") else { return };
    let start = Instant::now();
    let model = match Transformer::open(folder.as_ref()) {
        Ok(model) => model,
        Err(error) => return print_line(&format!("  cannot open the transformer: {error}")),
    };
    print_line(&format!("  {:<42}{:>12.2?}", "transformer, loading", start.elapsed()));
    for (name, text) in
        [("transformer, 12 pieces", TWELVE_PIECES), ("transformer, 118 pieces", long)]
    {
        let cost = median(rounds, || drop(black_box(model.embed(black_box(text)))));
        print_line(&format!("  {name:<42}{cost:>12.2?}"));
    }
}

fn search_table(rows: u32, rounds: u32) {
    let vectors: Vec<Vector> = (0..rows).map(made_vector).collect();
    let mut index = Index::new(DIMS);
    for (id, vector) in (0_u32..).zip(&vectors) {
        if let Err(error) = index.insert(Owner::Org(id % ORGS), id, vector) {
            return print_line(&error.to_string());
        }
    }
    let own: Vec<Vector> = vectors.iter().step_by(ORGS as usize).cloned().collect();
    let query = embed(TWELVE_PIECES);
    let params = SearchParams { max_hits: 2, min_cosine: 0.0 };
    let title = format!("searching {rows} vectors, best 2");
    print_line(&format!("{title:<44}{:>12}{:>14}{:>8}", "this index", "plain floats", "ratio"));
    let within = median(rounds * 5, || drop(black_box(index.nearest(0, &query, params))));
    let within_plain = median(rounds * 5, || drop(black_box(plain_scan(&own, &query))));
    print_row("  within one organisation (1 %)", within, within_plain);
    let all = median(rounds, || drop(black_box(index.nearest_all_owners(&query, params))));
    let all_plain = median(rounds, || drop(black_box(plain_scan(&vectors, &query))));
    print_row("  over all", all, all_plain);
}

/// Baseline: one float cosine per row, keeping the best two.
fn plain_scan(vectors: &[Vector], query: &Vector) -> Vec<(f32, usize)> {
    let mut best = vec![(f32::MIN, 0); 2];
    for (place, vector) in vectors.iter().enumerate() {
        let cosine = vector.cosine(query);
        if cosine > best[1].0 {
            best[1] = (cosine, place);
            best.sort_by(|a, b| b.0.total_cmp(&a.0));
        }
    }
    best
}

/// Deterministic pseudo-random vector.
fn made_vector(seed: u32) -> Vector {
    let mut state = u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let values: Vec<f32> = (0..DIMS)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let [_, _, _, _, _, _, low, high] = state.to_le_bytes();
            f32::from(u16::from_le_bytes([low, high])) - 32_768.0
        })
        .collect();
    Vector::from_values(values)
}

/// Typical agent text of 118 pieces.
fn long_text() -> String {
    let mut text = format!("{TWELVE_PIECES} ").repeat(9);
    text.push_str("and nothing else has changed since then, so stop");
    text
}

fn median(rounds: u32, mut job: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            job();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn print_row(name: &str, ours: Duration, plain: Duration) {
    let ratio = plain.as_secs_f64() / ours.as_secs_f64();
    print_line(&format!("{name:<44}{ours:>12.1?}{plain:>14.1?}{ratio:>8.2}"));
}

#[expect(clippy::print_stdout, reason = "the program prints a table")]
fn print_line(line: &str) {
    println!("{line}");
}
