//! Transformer embedder: a MiniLM-class model loaded from a folder.
//!
//! About four orders of magnitude slower than the static model; at a similarity of 0.8 it finds 12 of 40 rephrasings
//! instead of 7 at the same precision (`docs/decisions/0010-embeddings.md`). Use it off the hot path, for example to index
//! patterns.
//!
//! **Folder layout** (sentence-transformers): `config.json`, `tokenizer.json`, the network as `onnx/model.onnx` or
//! `model.onnx`, optionally `sentence_bert_config.json` (length limit) and `1_Pooling/config.json` (must select mean
//! pooling). Nothing is downloaded. `tools/onnx_from_safetensors.py` converts a folder that has only `model.safetensors`.

use std::fs;
use std::path::{Path, PathBuf};

use rten::{Model, NodeId, NodeInfo, Value, ValueOrView};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, NdTensorView};
use rten_text::tokenizer::{EncodeOptions, Tokenizer};
use serde_json::Value as Json;

use crate::vector::Vector;
use crate::wordpiece::MAX_TEXT_BYTES;

/// Paths of the network, in order of preference.
const MODEL_FILES: [&str; 2] = ["onnx/model.onnx", "model.onnx"];

/// Number of special tokens (`[CLS]`, `[SEP]`) around every text.
const FRAME_TOKENS: usize = 2;

/// Error of loading a model or embedding a text.
#[derive(Debug, thiserror::Error)]
pub enum TransformerError {
    #[error("{} is missing; {advice}", file.display())]
    Missing { file: PathBuf, advice: &'static str },
    #[error("{} cannot be read: {reason}", file.display())]
    Unreadable { file: PathBuf, reason: String },
    #[error("{} has no integer `{key}`; point to the folder of a BERT-like model", file.display())]
    MissingKey { file: PathBuf, key: &'static str },
    #[error("{} does not select mean pooling; use a model with `pooling_mode_mean_tokens`", file.display())]
    OtherPooling { file: PathBuf },
    #[error("{} returns vectors of {given} dimensions, config.json declares {declared}; use files of the same model", file.display())]
    DimensionMismatch { file: PathBuf, given: usize, declared: usize },
    #[error("the model failed on a text: {reason}")]
    Run { reason: String },
}

/// Loaded model.
pub struct Transformer {
    model: Model,
    tokenizer: Tokenizer,
    inputs: Vec<(NodeId, Input)>,
    output: NodeId,
    dims: usize,
    max_tokens: usize,
}

/// Kind of a network input.
#[derive(Clone, Copy)]
enum Input {
    TokenIds,
    AttentionMask,
    TokenTypes,
}

impl Transformer {
    /// Loads the model and embeds one word, so that an unusable folder is reported here.
    pub fn open(folder: &Path) -> Result<Self, TransformerError> {
        let config = Settings::read(folder.join("config.json"))?;
        let declared = config.number("hidden_size")?;
        check_pooling(folder)?;
        let tokenizer_file = folder.join("tokenizer.json");
        let tokenizer = Tokenizer::from_json(&read_text(&tokenizer_file)?)
            .map_err(|error| unreadable(&tokenizer_file, &error))?;
        let model_file = model_file(folder)?;
        let model = Model::load_file(&model_file).map_err(|e| unreadable(&model_file, &e))?;
        let loaded = Self {
            inputs: inputs_of(&model).map_err(|reason| unreadable(&model_file, &reason))?,
            output: output_of(&model).ok_or_else(|| unreadable(&model_file, &"no output"))?,
            max_tokens: max_tokens(folder, &config)?,
            dims: declared,
            model,
            tokenizer,
        };
        let given = loaded.embed("probe")?.dims();
        if given == declared {
            Ok(loaded)
        } else {
            Err(TransformerError::DimensionMismatch { file: model_file, given, declared })
        }
    }

    /// Returns the embedding of `text`: the mean over its tokens, normalised to unit length; zero for a text without
    /// tokens. Tokens beyond the model's length limit are ignored.
    pub fn embed(&self, text: &str) -> Result<Vector, TransformerError> {
        let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
        let options = EncodeOptions { max_chunk_len: Some(self.max_tokens), overlap: 0 };
        let encoded = self.tokenizer.encode(text, Some(options)).map_err(|e| failed(&e))?;
        let tokens: Vec<i32> = encoded.into_token_ids().into_iter().map(u32::cast_signed).collect();
        if tokens.len() <= FRAME_TOKENS {
            return Ok(Vector::from_values(vec![0.0; self.dims]));
        }
        let inputs = self.inputs.iter().map(|(node, input)| (*node, input.values(&tokens)));
        let outputs = self.model.run(inputs.collect(), &[self.output], None);
        let states = outputs.map_err(|e| failed(&e))?.into_iter().next();
        let states = states.ok_or_else(|| failed(&"the network returned no output"))?;
        let states: NdTensor<f32, 3> = Value::try_into(states).map_err(|e| failed(&e))?;
        Ok(Vector::from_values(sum_over_tokens(&states.view())))
    }

    pub fn dims(&self) -> usize {
        self.dims
    }
}

impl Input {
    fn values(self, tokens: &[i32]) -> ValueOrView<'static> {
        let values = match self {
            Self::TokenIds => tokens.to_vec(),
            Self::AttentionMask => vec![1; tokens.len()],
            Self::TokenTypes => vec![0; tokens.len()],
        };
        NdTensor::from_data([1, tokens.len()], values).into()
    }
}

/// Sums the token states; `from_values` normalises, so the sum is as good as the mean. A batch of one has no padding.
fn sum_over_tokens(states: &NdTensorView<'_, f32, 3>) -> Vec<f32> {
    let [_, tokens, dims] = states.shape();
    let mut sums = vec![0.0; dims];
    for token in 0..tokens {
        for (dim, sum) in sums.iter_mut().enumerate() {
            *sum += states[[0, token, dim]];
        }
    }
    sums
}

fn inputs_of(model: &Model) -> Result<Vec<(NodeId, Input)>, String> {
    let named = model.input_ids().iter().map(|node| {
        let info = model.node_info(*node);
        let name = info.as_ref().and_then(NodeInfo::name).unwrap_or_default();
        let input = match name {
            "input_ids" => Input::TokenIds,
            "attention_mask" => Input::AttentionMask,
            "token_type_ids" => Input::TokenTypes,
            other => return Err(format!("unsupported input `{other}`")),
        };
        Ok((*node, input))
    });
    named.collect()
}

/// Finds the token states by their usual name, otherwise takes the first output.
fn output_of(model: &Model) -> Option<NodeId> {
    model.find_node("last_hidden_state").or_else(|| model.output_ids().first().copied())
}

fn model_file(folder: &Path) -> Result<PathBuf, TransformerError> {
    let found = MODEL_FILES.iter().map(|name| folder.join(name)).find(|file| file.is_file());
    found.ok_or_else(|| TransformerError::Missing {
        file: folder.join(MODEL_FILES[0]),
        advice: if folder.join("model.safetensors").is_file() {
            "convert model.safetensors with crates/rb-embed/tools/onnx_from_safetensors.py"
        } else {
            "point to the folder of a sentence-transformers model that has an ONNX export"
        },
    })
}

/// Returns the model's length limit: its number of positions, or the lower limit of `sentence_bert_config.json`.
fn max_tokens(folder: &Path, config: &Settings) -> Result<usize, TransformerError> {
    let positions = config.number("max_position_embeddings")?;
    let limit_file = folder.join("sentence_bert_config.json");
    if !limit_file.is_file() {
        return Ok(positions);
    }
    Ok(positions.min(Settings::read(limit_file)?.number("max_seq_length")?))
}

fn check_pooling(folder: &Path) -> Result<(), TransformerError> {
    let file = folder.join("1_Pooling/config.json");
    if !file.is_file() {
        return Ok(());
    }
    let pooling = Settings::read(file)?;
    if pooling.values.get("pooling_mode_mean_tokens").and_then(Json::as_bool) == Some(true) {
        Ok(())
    } else {
        Err(TransformerError::OtherPooling { file: pooling.file })
    }
}

/// JSON file of the folder, with its path for error messages.
struct Settings {
    file: PathBuf,
    values: Json,
}

impl Settings {
    fn read(file: PathBuf) -> Result<Self, TransformerError> {
        let text = read_text(&file)?;
        let values = serde_json::from_str(&text).map_err(|error| unreadable(&file, &error))?;
        Ok(Self { file, values })
    }

    fn number(&self, key: &'static str) -> Result<usize, TransformerError> {
        let number = self.values.get(key).and_then(Json::as_u64);
        let number = number.and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| TransformerError::MissingKey { file: self.file.clone(), key })
    }
}

fn read_text(file: &Path) -> Result<String, TransformerError> {
    if !file.is_file() {
        return Err(TransformerError::Missing {
            file: file.to_owned(),
            advice: "point to the folder of a sentence-transformers model",
        });
    }
    fs::read_to_string(file).map_err(|error| unreadable(file, &error))
}

fn unreadable(file: &Path, reason: &dyn ToString) -> TransformerError {
    TransformerError::Unreadable { file: file.to_owned(), reason: reason.to_string() }
}

fn failed(reason: &dyn ToString) -> TransformerError {
    TransformerError::Run { reason: reason.to_string() }
}
