"""Options of `mnn convert` under MNN's names and ours do what the real mnnconvert's do; the real MNN runs the result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import onnxruntime
import peers
import pytest
from onnx import numpy_helper

import mnn_core as mnn
from mnn_core.cli.main import main
from mnn_core.formats import QuantizedWeight, quantize, read_mnn, write_json, write_mnn
from mnn_core.formats.tables import Decoder

RNG = np.random.default_rng(0)


def build(path: Path, text: str, **weights: tuple[int, ...]) -> Path:
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> m {text}')
    rng = np.random.default_rng(1)
    proto.graph.initializer.extend(
        numpy_helper.from_array((0.1 * rng.standard_normal(s)).astype(np.float32), n) for n, s in weights.items())
    path.write_bytes(proto.SerializeToString())
    return path


def net(path: Path) -> dict[str, Any]:
    return Decoder(path.read_bytes(), path.name).root("Net")


def tables(path: Path, kind: str) -> list[dict[str, Any]]:
    return [n.get("main", {}) for n in net(path)["oplists"] if n["type"] == kind]


def kinds(path: Path) -> list[str]:
    return [n["type"] for n in net(path)["oplists"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("options")


@pytest.fixture(scope="module")
def products(folder: Path) -> Path:
    """Products with a constant matrix of an input of ranks 1 to 4, a Gemm, and a constant vector."""
    return build(folder / "products.onnx", """(float[64] a, float[n, 64] b, float[n, 5, 64] c, float[2, n, 3, 64] d)
        => (float[48] oa, float[n, 48] ob, float[n, 5, 48] oc, float[2, n, 3, 48] od, float[n, 32] og, float[n, 5] ov) {
        oa = MatMul(a, w)  ob = MatMul(b, w)  m = MatMul(c, w)  oc = Add(m, t)  od = MatMul(d, w)
        og = Gemm<transB=1>(b, u, s)  ov = MatMul(c, v) }""", w=(64, 48), t=(48,), u=(32, 64), s=(32,), v=(64,))


PRODUCT_FEED = {"a": (64,), "b": (2, 64), "c": (2, 5, 64), "d": (2, 2, 3, 64)}
PRODUCT_OUTPUTS = ["oa", "ob", "oc", "od", "og", "ov"]


@pytest.mark.parametrize(("options", "tolerance"), [
    (["--convertMatmulToConv", "1"], 1e-5), (["--fp16"], 2e-3), (["--weightQuantBits", "8"], 2e-2),
    (["--weightQuantBits", "4", "--weightQuantAsymmetric", "--weightQuantBlock", "32"], 0.2),
    (["--weightQuantBits=8", "--weightQuantAsymmetric=1", "--weightQuantScaleBit", "16", "--saveExternalData"], 2e-2)],
    ids=lambda o: " ".join(o) if isinstance(o, list) else "")
def test_products_of_any_rank_are_packed(options: list[str], tolerance: float, products: Path, folder: Path,
                                         tmp_path: Path) -> None:
    target = tmp_path / "ours.mnn"
    assert main(["convert", "-f", "ONNX", "--modelFile", str(products), "--MNNModel", str(target), *options]) == 0
    assert kinds(target).count("Convolution") == 6
    assert "MatMul" not in kinds(target)
    feed = {n: RNG.standard_normal(s).astype(np.float32) for n, s in PRODUCT_FEED.items()}
    want = onnxruntime.InferenceSession(str(products)).run(PRODUCT_OUTPUTS, feed)
    ours = mnn.load(target, backend="numpy").run(feed)
    (theirs,) = peers.run(target, [feed], PRODUCT_OUTPUTS, tmp_path)
    for name, exact, real in zip(PRODUCT_OUTPUTS, want, theirs):
        assert ours[name].shape == exact.shape
        np.testing.assert_allclose(ours[name], exact, atol=tolerance * np.abs(exact).max())
        np.testing.assert_allclose(real, ours[name], atol=2e-3 * np.abs(exact).max())
    again = read_mnn(write_mnn(read_mnn(target)))  # what was read is stored as it was
    np.testing.assert_array_equal(mnn.load(again, backend="numpy").run(feed)["og"], ours["og"])


@pytest.mark.parametrize(("bits", "asymmetric", "block"), [(8, 0, 0), (4, 1, 32)])
def test_packed_products_are_those_of_mnnconvert(bits: int, asymmetric: int, block: int, products: Path,
                                                 tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.mnn"
    blocks = ["--weightQuantBlock", str(block)] if block else []
    peers.convert(products, {theirs: ["--weightQuantBits", str(bits), f"--weightQuantAsymmetric={asymmetric}", *blocks]})
    mnn.convert(products, tmp_path / "ours.mnn", weight_quant_bits=bits, weight_quant_asymmetric=bool(asymmetric),
                weight_quant_block=block)
    found = [sorted(bytes(c.quan["buffer"]) + c.alpha.tobytes() for c in read_mnn(p).constants.values()
                    if isinstance(c, QuantizedWeight)) for p in (tmp_path / "ours.mnn", theirs)]
    assert len(found[0]) == 6
    assert set(found[1]) <= set(found[0])


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize("asymmetric", [False, True])
def test_recurrent_weights_are_packed(kind: str, gates: int, asymmetric: bool, tmp_path: Path) -> None:
    source = build(tmp_path / "r.onnx", f"""(float[5, n, 32] x) => (float[5, 1, n, 64] y)
        {{ y = {kind}<hidden_size=64>(x, w, r, b) }}""", w=(1, gates * 64, 32), r=(1, gates * 64, 64), b=(1, gates * 128))
    mnn.convert(source, tmp_path / "plain.mnn")
    mnn.convert(source, tmp_path / "small.mnn", weight_quant_bits=8, weight_quant_asymmetric=asymmetric)
    assert (tmp_path / "small.mnn").stat().st_size < 0.4 * (tmp_path / "plain.mnn").stat().st_size
    feed = {"x": 0.1 * RNG.standard_normal((5, 2, 32)).astype(np.float32)}
    plain, small = (mnn.load(tmp_path / f, backend="numpy").run(feed)["y"] for f in ("plain.mnn", "small.mnn"))
    assert 0 < np.abs(plain - small).max() < 0.1
    ((theirs,),) = peers.run(tmp_path / "small.mnn", [feed], ["y"], tmp_path)
    np.testing.assert_allclose(theirs, small, atol=1e-4)


def test_hqq_lowers_the_error_it_is_made_for() -> None:
    weight = RNG.standard_normal((64, 128)).astype(np.float32)
    weight[:, ::17] *= 4  # outliers
    plain, better = (quantize(weight, 3, hqq=h).decode() - weight for h in (False, True))
    assert (np.abs(better) ** 0.7).sum() < 0.99 * (np.abs(plain) ** 0.7).sum()


@pytest.fixture(scope="module")
def images(folder: Path) -> Path:
    """A convolution, a batch norm, a Dropout, and a shape that goes into a Reshape."""
    return build(folder / "images.onnx", """(float[n, 3, h, w] x) => (float[n, 8, h, w] o, float[n, q] f) {
        a = Conv<pads=[1, 1, 1, 1]>(x, k)  b = BatchNormalization(a, s, t, m, v2)  r = Relu(b)  o = Dropout(r)
        g = Shape(o)  z = Constant<value=int64[1] {0}>()  e = Constant<value=int64[1] {1}>()  n = Slice(g, z, e)
        l = Constant<value=int64[1] {-1}>()  d = Concat<axis=0>(n, l)  f = Reshape(o, d)  v2 = Exp(v) }""",
                 k=(8, 3, 3, 3), s=(8,), t=(8,), m=(8,), v=(8,))


def check(source: Path, target: Path, feed: dict[str, np.ndarray], outputs: list[str], tmp_path: Path) -> None:
    """Both engines give what onnxruntime gives."""
    want = onnxruntime.InferenceSession(str(source)).run(outputs, feed)
    ours = mnn.load(target, backend="numpy").run(feed)
    (theirs,) = peers.run(target, [feed], outputs, tmp_path)
    for name, exact, real in zip(outputs, want, theirs):
        np.testing.assert_allclose(ours[name], exact, atol=1e-4 * np.abs(exact).max())
        np.testing.assert_allclose(real, exact, atol=1e-4 * np.abs(exact).max())


def test_for_training_keeps_what_training_needs(images: Path, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs.mnn", tmp_path / "ours.mnn"
    peers.convert(images, {theirs: ["--forTraining"]})
    assert main(["convert", "-f", "ONNX", "--modelFile", str(images), "--MNNModel", str(ours), "--forTraining"]) == 0
    for kind in ("BatchNorm", "Dropout", "Convolution"):
        assert kinds(ours).count(kind) == kinds(theirs).count(kind) == 1
    (mine,), (real,) = tables(ours, "BatchNorm"), tables(theirs, "BatchNorm")
    for field in ("slopeData", "meanData", "varData", "biasData"):
        np.testing.assert_allclose(mine[field], real[field], rtol=1e-6)
    feed = {"x": RNG.standard_normal((1, 3, 6, 5)).astype(np.float32)}  # the real MNN does not infer with its own such file
    (want,) = onnxruntime.InferenceSession(str(images)).run(["o"], feed)
    np.testing.assert_allclose(mnn.load(ours, backend="numpy").run(feed)["o"], want, atol=1e-5)


def test_keep_input_format(images: Path, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs.mnn", tmp_path / "ours.mnn"
    peers.convert(images, {theirs: ["--keepInputFormat=0"]})
    assert main(["convert", str(images), str(ours), "--keepInputFormat=0"]) == 0
    assert tables(ours, "Input")[0]["dformat"] == tables(theirs, "Input")[0]["dformat"] == "NC4HW4"
    check(images, ours, {"x": RNG.standard_normal((1, 3, 6, 5)).astype(np.float32)}, ["o", "f"], tmp_path)


def test_batch_and_texts(images: Path, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs.mnn", tmp_path / "ours.mnn"
    peers.convert(images, {theirs: ["--batch", "4", "--authCode", "secret"]})
    assert main(["convert", str(images), str(ours), "--batch", "4", "--authCode", "secret", "--bizCode", "demo"]) == 0
    assert tables(ours, "Input")[0]["dims"] == tables(theirs, "Input")[0]["dims"] == (4, 3, -1, -1)
    assert net(ours)["extraInfo"]["name"] == net(theirs)["extraInfo"]["name"] == "secret"
    assert net(ours)["bizCode"] == "demo"
    assert read_mnn(ours).outputs[0].shape == (4, 8, None, None)


def test_static_models_have_no_shapes_to_compute(images: Path, tmp_path: Path) -> None:
    (tmp_path / "config.txt").write_text("input_names = x\ninput_dims = 2x3x6x5\n")
    target = tmp_path / "static.mnn"
    arguments = ["convert", "-f", "ONNX", "--modelFile", str(images), "--MNNModel", str(target), "--saveStaticModel"]
    assert main([*arguments, "--inputConfigFile", str(tmp_path / "config.txt")]) == 0
    assert not {"Shape", "StridedSlice", "Concat"} & set(kinds(target))
    assert tables(target, "Input")[0]["dims"] == (2, 3, 6, 5)
    assert read_mnn(target).outputs[1].shape == (2, 240)
    check(images, target, {"x": RNG.standard_normal((2, 3, 6, 5)).astype(np.float32)}, ["o", "f"], tmp_path)
    assert main(arguments) == 3  # the shape is open
    (tmp_path / "config.txt").write_text("nonsense")
    assert main([*arguments, "--inputConfigFile", str(tmp_path / "config.txt")]) == 3


def test_denormalised_weights_become_zero(tmp_path: Path) -> None:
    proto = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> m (float[2] x) => (float[2] y) { y = Mul(x, k) }')
    proto.graph.initializer.append(numpy_helper.from_array(np.float32([1e-40, 2]), "k"))
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    for option, value in (("1", 0.0), ("0", 1e-40)):
        assert main(["convert", str(tmp_path / "m.onnx"), str(tmp_path / "m.mnn"), "--alignDenormalizedValue", option]) == 0
        assert tables(tmp_path / "m.mnn", "Const")[0]["float32s"].tolist() == [np.float32(value), 2]


def test_mnns_json_both_ways(images: Path, tmp_path: Path) -> None:
    """What the real tool prints is read; what we print, the real tool reads."""
    theirs = tmp_path / "theirs.mnn"
    peers.convert(images, {theirs: []})
    peers.tool(["-f", "MNN", "--modelFile", str(theirs), "--JsonFile", str(tmp_path / "theirs.json")])
    feed = {"x": RNG.standard_normal((1, 3, 6, 5)).astype(np.float32)}
    assert main(["convert", "-f", "JSON", "--modelFile", str(tmp_path / "theirs.json"), "--MNNModel",
                 str(tmp_path / "a.mnn")]) == 0
    check(images, tmp_path / "a.mnn", feed, ["o", "f"], tmp_path)
    assert main(["convert", "-f", "MNN", "--modelFile", str(theirs), "--JsonFile", str(tmp_path / "ours.json")]) == 0
    peers.tool(["-f", "JSON", "--modelFile", str(tmp_path / "ours.json"), "--MNNModel", str(tmp_path / "b.mnn")])
    ((first, second),) = (peers.run(p, [feed], ["o", "f"], tmp_path)[0] for p in [tmp_path / "b.mnn"])
    ((exact, flat),) = (peers.run(p, [feed], ["o", "f"], tmp_path)[0] for p in [theirs])
    np.testing.assert_array_equal(first, exact)
    np.testing.assert_array_equal(second, flat)
    broken = json.loads((tmp_path / "ours.json").read_text())
    broken["oplists"][0]["color"] = "red"
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    with pytest.raises(mnn.ModelFormatError, match="has no field 'color'"):
        mnn.convert(tmp_path / "broken.json")


def test_json_files_appear_whole(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = mnn.convert(images)
    (tmp_path / "m.json").write_text("old")

    def full(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="disk full"):
        write_json(graph, tmp_path / "m.json")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("m.json", "old")]


def test_testdir(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = RNG.standard_normal((1, 3, 4, 4)).astype(np.float32)
    (want,) = onnxruntime.InferenceSession(str(images)).run(["o"], {"x": x})
    (tmp_path / "input.json").write_text(json.dumps({"inputs": [{"name": "x", "shape": x.shape}], "outputs": ["o"]}))
    for name, values in (("x", x), ("o", want)):
        (tmp_path / f"{name}.txt").write_text("\n".join(map(str, values.reshape(-1))))
    (tmp_path / "config.json").write_text('{"backend": "numpy"}')
    arguments = ["convert", str(images), str(tmp_path / "m.mnn"), "--testdir", str(tmp_path), "--no-verify"]
    assert main([*arguments, "--testconfig", str(tmp_path / "config.json"), "--thredhold", "0.001"]) == 0
    (tmp_path / "m.mnn").unlink()
    (tmp_path / "o.txt").write_text("\n".join(map(str, want.reshape(-1) + 1)))
    assert main(arguments) == 1
    assert "output 'o' differs by" in capsys.readouterr().err
    assert not (tmp_path / "m.mnn").exists()
    assert main([*arguments, "--keep"]) == 1
    assert (tmp_path / "m.mnn").exists()


@pytest.mark.parametrize(("arguments", "text"), [
    (["--benchmarkModel"], "--benchmarkModel is refused: "), (["--customOpLibs", "a.so"], "--customOpLibs is refused: "),
    (["--targetVersion", "2.8"], "written for MNN 3.6"), (["--skip-pass", "nonsense"], "no such pass"),
    (["--weightQuantBits", "9"], "invalid choice: 9"), (["--weightQuantBlock", "0"], "expected a number of input channels"),
    (["--nonsense"], "unknown argument '--nonsense'"), (["--testconfig", "x"], "needs --testdir"),
    (["--optimizeLevel", "3"], "invalid choice: 3"), (["-f", "COREML"], "invalid choice: 'COREML'"),
], ids=lambda a: a[0] if isinstance(a, list) else "")
def test_wrong_options_are_told_in_one_line(arguments: list[str], text: str, images: Path, tmp_path: Path,
                                            capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["convert", str(images), str(tmp_path / "m.mnn"), *arguments])
    except SystemExit as left:
        code = left.code  # type: ignore[assignment]
    assert code == 2
    told = capsys.readouterr().err
    assert text in told
    assert told.count("\n") == 1
    assert not (tmp_path / "m.mnn").exists()


def test_passes_are_listed_shown_and_left_out(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "--passes", "--json"]) == 0
    names = [row["pass"] for row in json.loads(capsys.readouterr().out)]
    assert "convolution-affine" in names
    target = tmp_path / "m.mnn"
    assert main(["convert", str(images), str(target), "--dumpPass"]) == 0
    told = capsys.readouterr().err
    assert "pass convolution-affine: 1 changes" in told
    assert "  - Scale(a, " in told
    assert main(["convert", str(images), str(target), "--skip-pass", "convolution-affine"]) == 0
    assert "Scale" in kinds(target)
