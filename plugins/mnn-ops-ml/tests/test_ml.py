"""Operators of ai.onnx.ml, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import mnn_core as mnn

F, N, S = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
RNG = np.random.default_rng(7)


def check(op: str, inputs: dict[str, np.ndarray], kinds: list[int], version: int = 3, tolerance: float = 1e-5,
          **attrs: Any) -> list[Any]:
    """One node with the outputs' types, ours against onnxruntime's."""
    types = {"f": F, "i": N, "O": S}
    infos = [helper.make_tensor_value_info(n, types[a.dtype.kind], a.shape) for n, a in inputs.items()]
    outputs = [f"o{i}" for i in range(len(kinds))]
    node = helper.make_node(op, list(inputs), outputs, domain="ai.onnx.ml", **attrs)
    graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info(o, k, None) for o, k in zip(outputs, kinds)])
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17),
                                                                  helper.make_opsetid("ai.onnx.ml", version)])
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    found = list(mnn.load(mnn.convert(model, converter="onnx"), "numpy").run(inputs).values())
    for ours, theirs in zip(found, want, strict=True):
        assert ours.shape == theirs.shape
        if theirs.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
        else:
            assert ours.tolist() == theirs.tolist()
            assert ours.dtype == theirs.dtype
    return found


def rows(n: int = 40, features: int = 5) -> np.ndarray:
    return RNG.standard_normal((n, features)).astype(np.float32)


def words(*values: str) -> np.ndarray:
    return np.array(values, object)


def forest(trees: int, depth: int, ids: list[int], what: str, low: float = -1.0, mode: str = "BRANCH_LEQ") -> dict[str, Any]:
    """Random full trees of a depth, each leaf with a weight for each of some ids."""
    nodes: dict[str, list] = {k: [] for k in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids",
                                              "falsenodeids", "missing_value_tracks_true")}
    leaves: dict[str, list] = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(trees):
        for node in range(2 ** (depth + 1) - 1):
            inner = node < 2 ** depth - 1
            row = (tree, node, int(RNG.integers(5)), mode if inner else "LEAF", float(RNG.normal()),
                   2 * node + 1 if inner else 0, 2 * node + 2 if inner else 0, int(RNG.integers(2)))
            for key, value in zip(nodes, row):
                nodes[key].append(value)
            for i in () if inner else ids:
                for key, value in zip(leaves, (tree, node, i, float(RNG.uniform(low, 1)))):
                    leaves[key].append(value)
    return {**{f"nodes_{k}": v for k, v in nodes.items()}, **{f"{what}_{k}": v for k, v in leaves.items()}}


@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"])
@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
def test_trees_of_three_classes(transform: str, mode: str) -> None:
    x = rows()
    x[3, :] = np.nan
    check("TreeEnsembleClassifier", {"x": x}, [S, F], classlabels_strings=["a", "b", "c"], post_transform=transform,
          **forest(6, 3, [0, 1, 2], "class", mode=mode))


@pytest.mark.parametrize("low", [-1.0, 0.0])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_trees_of_two_classes(transform: str, low: float) -> None:
    """One weight decides between two; weights for both are as for more."""
    check("TreeEnsembleClassifier", {"x": rows()}, [N, F], classlabels_int64s=[3, 8], post_transform=transform,
          **forest(4, 2, [0], "class", low / 4))
    check("TreeEnsembleClassifier", {"x": rows()}, [N, F], classlabels_int64s=[0, 1], post_transform=transform,
          **forest(4, 2, [0, 1], "class", low))


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("base", [False, True])
def test_tree_regressors(aggregate: str, base: bool) -> None:
    more = {"base_values": [0.5, -0.25]} if base else {}
    check("TreeEnsembleRegressor", {"x": rows()}, [F], aggregate_function=aggregate, n_targets=2, **more,
          **forest(5, 3, [0, 1], "target"))


def test_a_tree_that_goes_round_is_refused() -> None:
    attrs = forest(1, 1, [0], "target")
    attrs["nodes_truenodeids"][0] = 0
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, **attrs)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", F, [None, 5])],
                              [helper.make_tensor_value_info("y", F, [None, 1])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("", 17)])
    with pytest.raises(mnn.MNNError):
        mnn.load(mnn.convert(model, converter="onnx"), "numpy").run({"x": np.full((4, 5), -100, np.float32)})


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("classes", [2, 3])
def test_linear_models(classes: int, transform: str) -> None:
    coefficients = RNG.standard_normal(classes * 5).tolist()
    check("LinearClassifier", {"x": rows()}, [N, F], coefficients=coefficients, intercepts=[0.1, -0.2, 0.3][:classes],
          classlabels_ints=[4, 5, 6][:classes], post_transform=transform)
    check("LinearRegressor", {"x": rows()}, [F], coefficients=coefficients, intercepts=[0.1, -0.2, 0.3][:classes],
          targets=classes, post_transform=transform)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("probabilities", [False, True])
def test_support_vectors(kernel: str, probabilities: bool) -> None:
    for classes in (2, 3):
        sizes, pairs = [4, 3, 5][:classes], classes * (classes - 1) // 2
        slopes = {"prob_a": (-RNG.uniform(0.5, 2, pairs)).tolist(), "prob_b": RNG.normal(size=pairs).tolist()}
        more = slopes if probabilities else {}
        check("SVMClassifier", {"x": rows()}, [N, F], kernel_type=kernel, kernel_params=[0.3, 0.1, 2.0],
              vectors_per_class=sizes, support_vectors=RNG.standard_normal(sum(sizes) * 5).tolist(),
              rho=RNG.normal(size=pairs).tolist(),
              coefficients=RNG.standard_normal((classes - 1) * sum(sizes)).tolist(), classlabels_ints=list(range(classes)),
              tolerance=1e-4, **more)
    check("SVMRegressor", {"x": rows()}, [F], kernel_type=kernel, kernel_params=[0.3, 0.1, 2.0], n_supports=4, rho=[0.25],
          support_vectors=RNG.standard_normal(20).tolist(), coefficients=RNG.standard_normal(4).tolist(), tolerance=1e-4)


def test_features() -> None:
    x = rows(6)
    check("Scaler", {"x": x}, [F], offset=[0.1, 0.2, 0.3, 0.4, 0.5], scale=[2.0, 1.0, 0.5, 3.0, 1.5])
    for norm in ("MAX", "L1", "L2"):
        check("Normalizer", {"x": np.abs(x)}, [F], norm=norm)
    check("Binarizer", {"x": x}, [F], threshold=0.25)
    x[1, 2] = np.nan
    check("Imputer", {"x": x}, [F], imputed_value_floats=[9.0], replaced_value_float=float("nan"))
    check("ArrayFeatureExtractor", {"x": x, "y": np.array([3, 0])}, [F])
    check("FeatureVectorizer", {"x": rows(3, 2), "y": rows(3, 4)}, [F], inputdimensions=[2, 4])


def test_labels() -> None:
    text, numbers = words("b", "x", "a"), np.array([[2, 5, 1]])
    check("LabelEncoder", {"x": text}, [N], 2, keys_strings=["a", "b"], values_int64s=[7, 8], default_int64=-3)
    check("LabelEncoder", {"x": numbers}, [S], 2, keys_int64s=[1, 2], values_strings=["one", "two"])
    check("LabelEncoder", {"x": rows(1, 2)}, [N], 2, keys_floats=[float("nan")], values_int64s=[1])
    check("CategoryMapper", {"x": text}, [N], 1, cats_strings=["a", "b"], cats_int64s=[5, 6])
    check("CategoryMapper", {"x": numbers}, [S], 1, cats_strings=["a", "b"], cats_int64s=[1, 2])
    check("OneHotEncoder", {"x": text}, [F], 1, cats_strings=["a", "b"], zeros=1)
    check("OneHotEncoder", {"x": numbers}, [F], 1, cats_int64s=[1, 2, 5], zeros=1)
    with pytest.raises(mnn.MNNError, match="'x' is none of its categories"):
        check_ours("OneHotEncoder", text, cats_strings=["a", "b"], zeros=0)


def check_ours(op: str, x: np.ndarray, **attrs: Any) -> None:
    node = helper.make_node(op, ["x"], ["y"], domain="ai.onnx.ml", **attrs)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", S, x.shape)],
                              [helper.make_tensor_value_info("y", F, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 1), helper.make_opsetid("", 17)])
    mnn.load(mnn.convert(model, converter="onnx"), "numpy").run({"x": x})


def test_maps() -> None:
    """Dictionaries go out as lists of dicts, and come in as dicts."""
    node = helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_strings=["a", "b"])
    back = helper.make_node("DictVectorizer", ["m"], ["v"], domain="ai.onnx.ml", string_vocabulary=["b", "c", "a"])
    inputs = [helper.make_tensor_value_info("x", F, [None, 2]), helper.make_value_info("m", helper.make_map_type_proto(
        S, helper.make_tensor_type_proto(F, [])))]
    outputs = [helper.make_value_info("y", helper.make_sequence_type_proto(helper.make_map_type_proto(
        S, helper.make_tensor_type_proto(F, [])))), helper.make_tensor_value_info("v", F, [1, 3])]
    model = helper.make_model(helper.make_graph([node, back], "g", inputs, outputs), ir_version=9, opset_imports=[
        helper.make_opsetid("ai.onnx.ml", 1), helper.make_opsetid("", 17)])
    feeds = {"x": np.array([[0.25, 0.5], [1, 2]], np.float32), "m": {"a": 1.5, "b": 2.5}}
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    got = mnn.load(mnn.convert(model, converter="onnx"), "numpy").run(feeds)
    assert got["y"] == want[0] == [{"a": 0.25, "b": 0.5}, {"a": 1, "b": 2}]
    assert got["v"].tolist() == want[1].tolist() == [[2.5, 0, 1.5]]
