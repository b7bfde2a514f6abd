//! The transformer with a tiny random model, and with a real one if available.
//!
//! `tiny_model/` has one layer, eight dimensions and a vocabulary of sixteen pieces. Its weights come from a seeded
//! generator and were written by `tools/onnx_from_safetensors.py`.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;
use std::{env, fs};

use proptest::prelude::*;
use rb_embed::{CONFIRMATION_MIN_COSINE, Transformer, TransformerError, TransformerWorker};
use tempfile::TempDir;

fn tiny_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/tiny_model")
}

fn tiny() -> Transformer {
    Transformer::open(&tiny_folder()).expect("the tiny model opens")
}

#[test]
fn a_unit_vector_depends_on_word_order() {
    let model = tiny();
    let there = model.embed("the test fails again").expect("the text is embedded");
    assert_eq!((model.dims(), there.dims()), (8, 8));
    assert!((there.cosine(&there) - 1.0).abs() < 1e-5);
    assert_eq!(there, model.embed("The  TEST fails\nagain").expect("the text is embedded"));
    let back = model.embed("again fails test the").expect("the text is embedded");
    assert!(there.cosine(&back) < 0.999);
}

#[test]
fn a_text_without_tokens_is_zero() {
    for text in ["", "  \n"] {
        assert!(tiny().embed(text).expect("the text is embedded").is_zero(), "{text:?}");
    }
}

#[test]
fn a_long_text_is_truncated_at_the_position_limit() {
    let model = tiny();
    let long = model.embed(&"retry ".repeat(50)).expect("the text is embedded");
    assert_eq!(long, model.embed(&"retry ".repeat(10)).expect("the text is embedded"));
}

#[test]
fn batch_and_urgent_jobs_give_the_same_vectors() {
    let (model, worker) =
        (tiny(), TransformerWorker::open(tiny_folder()).expect("the model opens"));
    let texts: Vec<String> = (0..40).map(|n| "the test fails again ".repeat(n % 3)).collect();
    let alone: Vec<_> =
        texts.iter().map(|text| model.embed(text).expect("the text is embedded")).collect();
    let (sender, receiver) = mpsc::channel();
    worker.embed(texts.clone(), move |vectors| sender.send(vectors).expect("the receiver exists"));
    let now = worker.embed_within(texts[..2].to_vec(), Duration::from_mins(1));
    assert_eq!(now.expect("within the timeout"), alone[..2]);
    assert_eq!(receiver.recv().expect("the job completes").expect("the texts are embedded"), alone);
    assert!(worker.embed_within(texts, Duration::ZERO).is_none(), "the timeout applies");
}

#[test]
fn pending_jobs_complete_when_the_worker_is_dropped() {
    let worker = TransformerWorker::open(tiny_folder()).expect("the model opens");
    let (sender, receiver) = mpsc::channel();
    worker.embed(vec!["retry".to_owned(); 10_000], move |result| {
        sender.send(result.is_ok()).expect("the receiver exists");
    });
    drop(worker);
    assert!(receiver.recv().is_ok(), "the job completes with a result or an error");
    assert!(TransformerWorker::open(PathBuf::from("/nowhere")).is_err());
}

/// Copies the tiny model, damages the copy and returns the error of opening it.
fn damaged(damage: impl Fn(&Path)) -> TransformerError {
    let copy = TempDir::new().expect("a folder");
    for file in ["config.json", "tokenizer.json", "onnx/model.onnx", "1_Pooling/config.json"] {
        let target = copy.path().join(file);
        fs::create_dir_all(target.parent().expect("inside the copy")).expect("a folder");
        fs::copy(tiny_folder().join(file), target).expect("a copy");
    }
    assert!(Transformer::open(copy.path()).is_ok());
    damage(copy.path());
    Transformer::open(copy.path()).err().expect("a damaged folder is rejected")
}

fn replace(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).expect("a text");
    assert!(text.contains(from));
    fs::write(file, text.replace(from, to)).expect("written");
}

#[test]
fn an_unusable_folder_is_reported_with_the_file_and_the_remedy() {
    let remove = |name: &'static str| {
        move |folder: &Path| fs::remove_file(folder.join(name)).expect("removed")
    };
    for name in ["config.json", "tokenizer.json", "onnx/model.onnx"] {
        let message = damaged(remove(name)).to_string();
        assert!(message.contains(name) && message.contains("point to the folder"), "{message}");
    }
    let only_safetensors = damaged(|folder| {
        remove("onnx/model.onnx")(folder);
        fs::write(folder.join("model.safetensors"), "").expect("written");
    });
    assert!(
        only_safetensors.to_string().contains("onnx_from_safetensors.py"),
        "{only_safetensors}"
    );
    let no_size = damaged(|folder| replace(&folder.join("config.json"), "hidden_size", "size"));
    assert!(
        matches!(no_size, TransformerError::MissingKey { key: "hidden_size", .. }),
        "{no_size}"
    );
    let wrong = damaged(|folder| replace(&folder.join("config.json"), "_size\": 8", "_size\": 9"));
    assert!(
        matches!(wrong, TransformerError::DimensionMismatch { given: 8, declared: 9, .. }),
        "{wrong}"
    );
    let pooling = damaged(|folder| replace(&folder.join("1_Pooling/config.json"), "true", "false"));
    assert!(matches!(pooling, TransformerError::OtherPooling { .. }), "{pooling}");
    for name in ["config.json", "tokenizer.json", "onnx/model.onnx"] {
        let garbage = damaged(|folder| fs::write(folder.join(name), "garbage").expect("written"));
        assert!(matches!(garbage, TransformerError::Unreadable { .. }), "{garbage}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_text_is_embedded_or_rejected(text in any::<String>()) {
        let model = tiny();
        if let Ok(vector) = model.embed(&text) {
            prop_assert_eq!(&vector, &model.embed(&text).expect("again"));
            prop_assert!(vector.values().iter().all(|value| value.is_finite()));
        }
    }
}

/// Reference cosines from another runtime (candle) with the same weights.
#[test]
fn a_real_model_gives_the_reference_cosines() {
    let Some(folder) = env::var_os("RB_TEST_MINILM") else {
        println!("skipped: set RB_TEST_MINILM to a folder with all-MiniLM-L6-v2");
        return;
    };
    let model = Transformer::open(Path::new(&folder)).expect("the model opens");
    let embed = |text| model.embed(text).expect("the text is embedded");
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
fn a_real_model_confirms_rephrasings_and_rejects_related_texts() {
    let Some(folder) = env::var_os("RB_TEST_MINILM") else {
        println!("skipped: set RB_TEST_MINILM to a folder with all-MiniLM-L6-v2");
        return;
    };
    let model = Transformer::open(Path::new(&folder)).expect("the model opens");
    let embed = |text| model.embed(text).expect("the text is embedded");
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
        assert_eq!(cosine >= CONFIRMATION_MIN_COSINE, expected, "{a} / {b}: {cosine:.3}");
    }
}
