//! Rank correlation of the static model on the test part of the STS benchmark, whose licence does not allow including it.

use std::env;
use std::fs;

use rb_embed::embed;

/// Published Spearman rank correlation with human grades.
const SPEARMAN: f64 = 0.76;

#[test]
fn the_rank_correlation_equals_the_published_value() {
    let Some(file) = env::var_os("RB_TEST_STS") else {
        println!(
            "skipped: set RB_TEST_STS to stsb-en-test.csv (two sentences and a grade per line)"
        );
        return;
    };
    let text = fs::read_to_string(file).expect("a file of sentence pairs");
    let (mut cosines, mut grades) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let fields = fields(line);
        let [a, b, grade] = &fields[..] else {
            panic!("expected two sentences and a grade: {line}")
        };
        cosines.push(f64::from(embed(a).cosine(&embed(b))));
        grades.push(grade.parse::<f64>().expect("a grade"));
    }
    let spearman = correlation(&ranks(&cosines), &ranks(&grades));
    println!("Spearman over {} pairs: {spearman:.3}", grades.len());
    assert!((spearman - SPEARMAN).abs() < 0.01, "{spearman:.3}, not {SPEARMAN}");
}

/// Splits a CSV line, with quoted fields and doubled quotes.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_quoted && characters.next_if_eq(&'"').is_some() => field.push('"'),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    fields.push(field);
    fields
}

/// Returns the rank of each value; equal values get the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let count = |which: &dyn Fn(&f64) -> bool| {
        f64::from(
            u32::try_from(values.iter().filter(|other| which(other)).count()).expect("fits in u32"),
        )
    };
    values
        .iter()
        .map(|value| count(&|other| other < value) + count(&|other| other == value) / 2.0)
        .collect()
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |values: &[f64]| {
        values.iter().sum::<f64>() / f64::from(u32::try_from(values.len()).expect("fits in u32"))
    };
    let (mean_a, mean_b) = (mean(a), mean(b));
    let product = |x: &[f64], mean_x: f64, y: &[f64], mean_y: f64| {
        x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>()
    };
    product(a, mean_a, b, mean_b)
        / (product(a, mean_a, a, mean_a) * product(b, mean_b, b, mean_b)).sqrt()
}

#[test]
fn csv_fields_and_ranks_are_computed() {
    assert_eq!(
        fields(r#""He said ""no"", twice",plain,3.5"#),
        [r#"He said "no", twice"#, "plain", "3.5"]
    );
    assert_eq!(ranks(&[0.3, 0.1, 0.3]), [2.0, 0.5, 2.0]);
    let same = [1.0, 2.0, 4.0];
    assert!((correlation(&same, &same) - 1.0).abs() < 1e-12);
}
