"""Writes onnx/model.onnx into the folder of a BERT-like model that has model.safetensors only.

    pip install numpy onnx safetensors
    python onnx_from_safetensors.py <folder>

Run once per model, by hand. The program itself never needs Python.
"""

import json
import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save
from safetensors.numpy import load_file


class Graph:
    """Nodes and weights, named by a counter."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def constant(self, values):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def add(self, kind, *inputs, **attributes):
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name


class Bert(Graph):
    def __init__(self, config, tensors):
        super().__init__()
        self.config = config
        self.tensors = {name.removeprefix("bert."): values for name, values in tensors.items()}

    def weight(self, name):
        return self.tensors[name].astype(np.float32)

    def number(self, value):
        return self.constant(np.float32(value))

    def shape(self, *sizes):
        return self.constant(np.array(sizes, np.int64))

    def linear(self, x, name):
        product = self.add("MatMul", x, self.constant(self.weight(f"{name}.weight").T))
        return self.add("Add", product, self.constant(self.weight(f"{name}.bias")))

    def norm(self, x, name):
        scale, bias = (self.constant(self.weight(f"{name}.{part}")) for part in ("weight", "bias"))
        epsilon = self.config["layer_norm_eps"]
        return self.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=epsilon)

    def gelu(self, x):
        erf = self.add("Erf", self.add("Div", x, self.number(2**0.5)))
        return self.add("Mul", self.add("Mul", x, self.add("Add", erf, self.number(1))), self.number(0.5))

    def embeddings(self):
        table = lambda name: self.constant(self.weight(f"embeddings.{name}_embeddings.weight"))
        words = self.add("Gather", table("word"), "input_ids")
        types = self.add("Gather", table("token_type"), "token_type_ids")
        length = self.add("Shape", "input_ids", start=1, end=2)
        positions = self.add("Slice", table("position"), self.shape(0), length, self.shape(0))
        return self.norm(self.add("Add", self.add("Add", words, types), positions), "embeddings.LayerNorm")

    def attention(self, x, mask, name):
        heads = self.config["num_attention_heads"]
        head_size = self.config["hidden_size"] // heads
        split = self.shape(0, 0, heads, head_size)
        parts = [self.add("Reshape", self.linear(x, f"{name}.self.{part}"), split) for part in ("query", "key", "value")]
        turns = ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        query, key, value = (self.add("Transpose", part, perm=turn) for part, turn in zip(parts, turns))
        scores = self.add("Div", self.add("MatMul", query, key), self.number(head_size**0.5))
        weights = self.add("Softmax", self.add("Add", scores, mask), axis=-1)
        mixed = self.add("Transpose", self.add("MatMul", weights, value), perm=[0, 2, 1, 3])
        joined = self.add("Reshape", mixed, self.shape(0, 0, heads * head_size))
        return self.norm(self.add("Add", self.linear(joined, f"{name}.output.dense"), x), f"{name}.output.LayerNorm")

    def build(self):
        if self.config["hidden_act"] != "gelu":
            sys.exit(f"only gelu is known, not {self.config['hidden_act']}")
        x = self.embeddings()
        kept = self.add("Cast", "attention_mask", to=TensorProto.FLOAT)
        mask = self.add("Mul", self.add("Sub", self.number(1), kept), self.number(-1e9))
        mask = self.add("Unsqueeze", mask, self.shape(1, 2))
        for layer in range(self.config["num_hidden_layers"]):
            name = f"encoder.layer.{layer}"
            x = self.attention(x, mask, f"{name}.attention")
            inner = self.gelu(self.linear(x, f"{name}.intermediate.dense"))
            x = self.norm(self.add("Add", self.linear(inner, f"{name}.output.dense"), x), f"{name}.output.LayerNorm")
        self.nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"]))


def main(folder):
    config = json.loads((folder / "config.json").read_text())
    bert = Bert(config, load_file(folder / "model.safetensors"))
    bert.build()
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    states = ["batch", "tokens", config["hidden_size"]]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, states)
    graph = helper.make_graph(bert.nodes, "bert", inputs, [output], bert.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model)
    target = folder / "onnx" / "model.onnx"
    target.parent.mkdir(exist_ok=True)
    save(model, target)
    print(f"wrote {target}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
