//! The published figure of the packed vectors, on the published set: the test part of the STS benchmark, whose licence
//! keeps it out of this repository.

use std::env;
use std::fs;

use rb_embed::embed;

/// The rank correlation with people's grades that these vectors are known for.
const SPEARMAN: f64 = 0.76;

#[test]
fn sentences_are_ranked_as_people_rank_them() {
    let Some(file) = env::var_os("RB_TEST_STS") else {
        println!(
            "skipped: RB_TEST_STS does not point to stsb-en-test.csv (two sentences and a grade a line)"
        );
        return;
    };
    let text = fs::read_to_string(file).expect("a file of sentence pairs");
    let (mut cosines, mut grades) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let fields = fields(line);
        let [a, b, grade] = &fields[..] else { panic!("two sentences and a grade: {line}") };
        cosines.push(f64::from(embed(a).cosine(&embed(b))));
        grades.push(grade.parse::<f64>().expect("a grade"));
    }
    let spearman = correlation(&ranks(&cosines), &ranks(&grades));
    println!("Spearman over {} pairs: {spearman:.3}", grades.len());
    assert!((spearman - SPEARMAN).abs() < 0.01, "{spearman:.3}, not {SPEARMAN}");
}

/// The fields of a line of comma-separated values; within quotes a comma is a comma and two quotes are one.
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

/// The rank of each value; equal values share the middle of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let count = |which: &dyn Fn(&f64) -> bool| {
        f64::from(u32::try_from(values.iter().filter(|other| which(other)).count()).expect("few"))
    };
    values
        .iter()
        .map(|value| count(&|other| other < value) + count(&|other| other == value) / 2.0)
        .collect()
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |values: &[f64]| {
        values.iter().sum::<f64>() / f64::from(u32::try_from(values.len()).expect("few"))
    };
    let (mean_a, mean_b) = (mean(a), mean(b));
    let product = |x: &[f64], mean_x: f64, y: &[f64], mean_y: f64| {
        x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>()
    };
    product(a, mean_a, b, mean_b)
        / (product(a, mean_a, a, mean_a) * product(b, mean_b, b, mean_b)).sqrt()
}

#[test]
fn ranks_and_fields_are_read_as_they_are_written() {
    assert_eq!(
        fields(r#""He said ""no"", twice",plain,3.5"#),
        [r#"He said "no", twice"#, "plain", "3.5"]
    );
    assert_eq!(ranks(&[0.3, 0.1, 0.3]), [2.0, 0.5, 2.0]);
    let same = [1.0, 2.0, 4.0];
    assert!((correlation(&same, &same) - 1.0).abs() < 1e-12);
}
