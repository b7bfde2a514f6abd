//! The transformer, on a tiny model with random weights and on a real one when there is one.
//!
//! `tiny_model/` is one layer of eight dimensions, drawn once from a seeded generator and written by
//! `tools/onnx_from_safetensors.py`: it knows sixteen pieces and means nothing.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;
use std::{env, fs};

use proptest::prelude::*;
use rb_embed::{CONFIRMED_FROM, HostedTransformer, Transformer, TransformerError};
use tempfile::TempDir;

fn tiny_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/tiny_model")
}

fn tiny() -> Transformer {
    Transformer::open(&tiny_folder()).expect("the tiny model opens")
}

#[test]
fn a_text_is_a_unit_vector_that_depends_on_the_order_of_words() {
    let model = tiny();
    let there = model.embed("the test fails again").expect("a vector");
    assert_eq!((model.dims(), there.dims()), (8, 8));
    assert!((there.cosine(&there) - 1.0).abs() < 1e-5);
    assert_eq!(there, model.embed("The  TEST fails\nagain").expect("a vector"));
    let back = model.embed("again fails test the").expect("a vector");
    assert!(there.cosine(&back) < 0.999);
}

#[test]
fn a_text_without_tokens_is_zero() {
    for text in ["", "  \n"] {
        assert!(tiny().embed(text).expect("a vector").is_zero(), "{text:?}");
    }
}

#[test]
fn a_long_text_is_read_up_to_the_positions_of_the_model() {
    let model = tiny();
    let long = model.embed(&"retry ".repeat(50)).expect("a vector");
    assert_eq!(long, model.embed(&"retry ".repeat(10)).expect("a vector"));
}

#[test]
fn a_hosted_model_gives_the_same_vectors_to_those_who_wait_and_those_who_do_not() {
    let (model, hosted) = (tiny(), HostedTransformer::open(tiny_folder()).expect("a model"));
    let texts: Vec<String> = (0..40).map(|n| "the test fails again ".repeat(n % 3)).collect();
    let alone: Vec<_> = texts.iter().map(|text| model.embed(text).expect("a vector")).collect();
    let (done, answer) = mpsc::channel();
    hosted.embed(texts.clone(), move |vectors| done.send(vectors).expect("somebody waits"));
    let now = hosted.embed_within(texts[..2].to_vec(), Duration::from_mins(1));
    assert_eq!(now.expect("in time"), alone[..2]);
    assert_eq!(answer.recv().expect("an answer").expect("vectors"), alone);
    assert!(hosted.embed_within(texts, Duration::ZERO).is_none(), "nobody waits for ever");
}

#[test]
fn who_waits_for_a_hosted_model_that_goes_is_told() {
    let hosted = HostedTransformer::open(tiny_folder()).expect("a model");
    let (done, answer) = mpsc::channel();
    hosted.embed(vec!["retry".to_owned(); 10_000], move |told| {
        done.send(told.is_ok()).expect("somebody waits");
    });
    drop(hosted);
    assert!(answer.recv().is_ok(), "an answer, whichever");
    assert!(HostedTransformer::open(PathBuf::from("/nowhere")).is_err());
}

/// Copies the tiny model, spoils it, and returns what opening says.
fn spoiled(spoil: impl Fn(&Path)) -> TransformerError {
    let copy = TempDir::new().expect("a folder");
    for file in ["config.json", "tokenizer.json", "onnx/model.onnx", "1_Pooling/config.json"] {
        let target = copy.path().join(file);
        fs::create_dir_all(target.parent().expect("inside the copy")).expect("a folder");
        fs::copy(tiny_folder().join(file), target).expect("a copy");
    }
    assert!(Transformer::open(copy.path()).is_ok());
    spoil(copy.path());
    Transformer::open(copy.path()).err().expect("a spoiled folder is refused")
}

fn replace(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).expect("a text");
    assert!(text.contains(from));
    fs::write(file, text.replace(from, to)).expect("written");
}

#[test]
fn a_wrong_folder_is_refused_with_the_file_and_the_remedy() {
    let remove = |name: &'static str| {
        move |folder: &Path| fs::remove_file(folder.join(name)).expect("removed")
    };
    for name in ["config.json", "tokenizer.json", "onnx/model.onnx"] {
        let message = spoiled(remove(name)).to_string();
        assert!(message.contains(name) && message.contains("point to the folder"), "{message}");
    }
    let only_safetensors = spoiled(|folder| {
        remove("onnx/model.onnx")(folder);
        fs::write(folder.join("model.safetensors"), "").expect("written");
    });
    assert!(
        only_safetensors.to_string().contains("onnx_from_safetensors.py"),
        "{only_safetensors}"
    );
    let no_size = spoiled(|folder| replace(&folder.join("config.json"), "hidden_size", "size"));
    assert!(
        matches!(no_size, TransformerError::MissingKey { key: "hidden_size", .. }),
        "{no_size}"
    );
    let wrong = spoiled(|folder| replace(&folder.join("config.json"), "_size\": 8", "_size\": 9"));
    assert!(matches!(wrong, TransformerError::WrongDims { given: 8, promised: 9, .. }), "{wrong}");
    let pooling = spoiled(|folder| replace(&folder.join("1_Pooling/config.json"), "true", "false"));
    assert!(matches!(pooling, TransformerError::OtherPooling { .. }), "{pooling}");
    for name in ["config.json", "tokenizer.json", "onnx/model.onnx"] {
        let garbage = spoiled(|folder| fs::write(folder.join(name), "garbage").expect("written"));
        assert!(matches!(garbage, TransformerError::Unreadable { .. }), "{garbage}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_embedded_or_refused(text in any::<String>()) {
        let model = tiny();
        if let Ok(vector) = model.embed(&text) {
            prop_assert_eq!(&vector, &model.embed(&text).expect("again"));
            prop_assert!(vector.values().iter().all(|value| value.is_finite()));
        }
    }
}

/// Cosines as another runtime (candle, over the same weights) gives them.
#[test]
fn a_real_model_gives_the_cosines_it_is_known_for() {
    let Some(folder) = env::var_os("RB_TEST_MINILM") else {
        println!("skipped: RB_TEST_MINILM does not point to a folder with all-MiniLM-L6-v2");
        return;
    };
    let model = Transformer::open(Path::new(&folder)).expect("a model");
    let embed = |text| model.embed(text).expect("a vector");
    assert_eq!(model.dims(), 384);
    for (a, b, expected) in [
        ("session timeout", "session expiry", 0.6562),
        ("session timeout", "request timeout", 0.7053),
        ("session timeout", "database connection pool size", 0.1733),
    ] {
        let cosine = embed(a).cosine(&embed(b));
        assert!((cosine - expected).abs() < 0.001, "{a} / {b}: {cosine:.4}, not {expected}");
    }
}

#[test]
fn a_real_model_confirms_rewordings_and_sorts_out_lists() {
    let Some(folder) = env::var_os("RB_TEST_MINILM") else {
        println!("skipped: RB_TEST_MINILM does not point to a folder with all-MiniLM-L6-v2");
        return;
    };
    let model = Transformer::open(Path::new(&folder)).expect("a model");
    let embed = |text| model.embed(text).expect("a vector");
    for (a, b, expected) in [
        ("session timeout", "session expiry", true),
        ("session expiry", "session token expiration", true),
        ("1911 Marburg ferry accident victims", "ferry accident Marburg 1911 death toll", true),
        ("cache invalidation", "expire cache entries", true),
        ("config loading", "read configuration file", true),
        ("population of Lyon 1990", "population of Nice 1990", false),
        ("price of apples", "price of oranges", false),
        ("cache key", "cache size", false),
        ("database connection", "database column", false),
    ] {
        let cosine = embed(a).cosine(&embed(b));
        let suspected = rb_embed::embed(a).cosine(&rb_embed::embed(b));
        assert!(suspected >= 0.55, "{a} / {b}: {suspected:.3} by the vectors");
        assert_eq!(cosine >= CONFIRMED_FROM, expected, "{a} / {b}: {cosine:.3}");
    }
}
