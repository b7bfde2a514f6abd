//! Prints what embedding and searching cost here: `cargo bench -p rb-embed`.
//!
//! Machines differ and are shared, so the search is timed beside a plain scan of floats in the same
//! run; read the ratio. With `RB_TEST_MINILM` set to the folder of a model, the transformer is timed
//! too. Run as a test (`cargo test --benches`) it does everything once, small.

/// Sentences by the million.
#[path = "../tests/it/sentences.rs"]
mod sentences;

use std::hint::black_box;
use std::time::{Duration, Instant};

use rb_embed::{DIMS, Index, Owner, Transformer, Vector, Wanted, embed};
use sentences::Sentences;

/// An organisation's share of the vectors: one in a hundred.
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

/// One group that grows, beside an exact scan of the same vectors: in groups of a thousand, each is small enough for it.
fn growth_table(sizes: &[u64]) {
    let sentences = Sentences::new();
    let wanted = Wanted { count_max: 2, cosine_min: 0.0 };
    let (mut one, mut many) = (Index::new(DIMS), Index::new(DIMS));
    let title = "sentences of one owner, best 2";
    print_line(&format!(
        "{title:<32}{:>12}{:>12}{:>10}{:>14}{:>12}",
        "p50", "p99", "recall", "exact scan", "adding one"
    ));
    let mut next = 0;
    for size in sizes {
        let (mut adding, added) = (Duration::ZERO, next);
        while next < *size {
            let vector = embed(&sentences.sentence(next));
            let start = Instant::now();
            let inserted = one.insert(Owner::Org(0), next, &vector);
            adding += start.elapsed();
            if let Err(wrong) = inserted.and(many.insert(Owner::Org(next / 1_000), next, &vector)) {
                return print_line(&wrong.to_string());
            }
            next += 1;
        }
        let adding = adding / u32::try_from(size - added).unwrap_or(u32::MAX);
        let (mut times, mut exact_times) = (Vec::new(), Vec::new());
        let (mut found, mut there) = (0, 0);
        for number in (0..*size).step_by(usize::try_from(size / 200).unwrap_or(1).max(1)) {
            let query = embed(&sentences.rewording(number));
            let start = Instant::now();
            let hits = one.nearest(0, &query, wanted).unwrap_or_default();
            times.push(start.elapsed());
            let start = Instant::now();
            let exact = many.nearest_of_all(&query, wanted).unwrap_or_default();
            exact_times.push(start.elapsed());
            there += exact.len();
            // As near as the worst of the best: a twin of one of them will do.
            let bar = exact.last().map_or(0.0, |hit| hit.cosine);
            found += hits.iter().filter(|hit| hit.cosine >= bar).count();
        }
        times.sort_unstable();
        exact_times.sort_unstable();
        let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        let exact = exact_times[exact_times.len() / 2];
        let recall = f64::from(u32::try_from(found).unwrap_or(0))
            / f64::from(u32::try_from(there).unwrap_or(1));
        let title = format!("  {size}");
        print_line(&format!(
            "{title:<32}{p50:>12.1?}{p99:>12.1?}{recall:>10.3}{exact:>14.1?}{adding:>12.1?}"
        ));
    }
}

/// Only where somebody has the model and says where.
fn transformer_rows(long: &str, rounds: u32) {
    let Some(folder) = std::env::var_os("RB_TEST_MINILM") else { return };
    let start = Instant::now();
    let model = match Transformer::open(folder.as_ref()) {
        Ok(model) => model,
        Err(error) => return print_line(&format!("  no transformer: {error}")),
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
        if let Err(wrong) = index.insert(Owner::Org(id % ORGS), id, vector) {
            return print_line(&wrong.to_string());
        }
    }
    let own: Vec<Vector> = vectors.iter().step_by(ORGS as usize).cloned().collect();
    let query = embed(TWELVE_PIECES);
    let wanted = Wanted { count_max: 2, cosine_min: 0.0 };
    let title = format!("searching {rows} vectors, best 2");
    print_line(&format!("{title:<44}{:>12}{:>14}{:>8}", "this index", "plain floats", "ratio"));
    let within = median(rounds * 5, || drop(black_box(index.nearest(0, &query, wanted))));
    let within_plain = median(rounds * 5, || drop(black_box(plain_scan(&own, &query))));
    print_row("  within one organisation (1 %)", within, within_plain);
    let all = median(rounds, || drop(black_box(index.nearest_of_all(&query, wanted))));
    let all_plain = median(rounds, || drop(black_box(plain_scan(&vectors, &query))));
    print_row("  over all", all, all_plain);
}

/// What one would write first: a cosine per row, the best two kept.
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

/// Spread like nothing in particular, the same in every run.
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

/// 118 pieces of what an agent might say.
fn long_text() -> String {
    let mut text = format!("{TWELVE_PIECES} ").repeat(9);
    text.push_str("and nothing else has changed since then, so stop");
    text
}

fn median(rounds: u32, mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            work();
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

#[expect(clippy::print_stdout, reason = "printing a table is what this program is for")]
fn print_line(line: &str) {
    println!("{line}");
}
