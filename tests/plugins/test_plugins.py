"""Discovery, states, isolation: with fake installed packages (a module and a dist-info folder on sys.path)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mnn_core.errors import BackendError, ConversionError, PluginError
from mnn_core.plugins import PluginInfo, Registry

BACKEND = """
import mnn_core as mnn
mnn_api = (1, 0)
class Fake(mnn.KernelBackend):
    id = "{id}"
    @classmethod
    def probe(cls):
        return {devices}
    def kernel(self, op, inputs, outputs):
        return mnn.Support(False, "fake")
@mnn.hookimpl
def mnn_backend():
    return Fake
"""
DEVICE = '[mnn.Device("fake:0", "Fake device")]'


def install(site: Path, name: str, source: str, group: str = "mnn.backends", id: str | None = None) -> None:
    """Makes a package look installed in a folder of sys.path."""
    module = name.replace("-", "_")
    (site / f"{module}.py").write_text(source)
    info = site / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{id or name} = {module}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("MNN_PLUGINS", raising=False)
    return tmp_path


def backend(id: str, devices: str = DEVICE) -> str:
    return BACKEND.format(id=id, devices=devices)


def info(registry: Registry, id: str) -> PluginInfo:
    return next(p for p in registry.infos() if p.id == id)


def test_states_of_good_and_bad_plugins(site: Path) -> None:
    install(site, "good-one", backend("good-one"))
    install(site, "no-device", backend("no-device", "[]"))
    install(site, "raises", "raise ZeroDivisionError('at import')")
    install(site, "exits", "import sys; sys.exit(3)")
    install(site, "lacks-library", "import ctypes; ctypes.CDLL('libmissing_vendor.so')")
    install(site, "bad-probe", backend("bad-probe", "1 / 0"))
    install(site, "hookless", "mnn_api = (1, 0)")
    install(site, "newer", "mnn_api = (1, 99)")
    install(site, "older", "mnn_api = (0, 1)")
    registry = Registry()
    state = {p.id: (registry.check(p).state, p.reason) for p in registry.infos()}
    assert state["good-one"] == ("ready", "Fake device")
    assert state["no-device"][0] == "no-device"
    assert state["raises"] == ("broken", "ZeroDivisionError: at import")
    assert state["exits"][0] == "broken"
    assert state["lacks-library"][0] == "broken"
    assert "libmissing_vendor.so" in state["lacks-library"][1]
    assert state["bad-probe"] == ("broken", "ZeroDivisionError: division by zero")
    assert state["hookless"][0] == "broken"
    assert "mnn_backend" in state["hookless"][1]
    assert state["newer"] == ("incompatible", "built for plugin API 1.99, this mnn_core has 1.0; upgrade mnn-core")
    assert state["older"] == ("incompatible", "built for plugin API 0.1, this mnn_core has 1.0; upgrade older")
    assert state["opencl"] == ("missing", "not installed: pip install mnn-opencl")
    assert registry.backend_class("good-one").id == "good-one"
    with pytest.raises(BackendError, match="ZeroDivisionError: at import"):
        registry.backend_class("raises")
    with pytest.raises(BackendError, match="no device"):
        registry.open_backend("no-device")


def test_discovery_imports_nothing(site: Path) -> None:
    install(site, "raises-late", "raise RuntimeError")
    registry = Registry()
    assert info(registry, "raises-late").state == "found"
    assert "raises_late" not in sys.modules


def test_one_id_claimed_twice_names_both_and_can_be_qualified(site: Path) -> None:
    install(site, "first-dist", backend("same"), id="same")
    install(site, "second-dist", backend("same"), id="same")
    registry = Registry()
    with pytest.raises(BackendError, match=r"first-dist 1\.0, second-dist 1\.0.*'same@"):
        registry.backend_class("same")
    assert registry.backend_class("same@second-dist").__module__ == "second_dist"


def test_unknown_and_missing_say_what_to_do(site: Path) -> None:
    registry = Registry()
    with pytest.raises(BackendError, match="pip install mnn-cuda"):
        registry.backend_class("cuda")
    with pytest.raises(BackendError, match="no backend 'nonsense'"):
        registry.backend_class("nonsense")
    with pytest.raises(ConversionError, match="pip install mnn-converter-caffe"):
        registry.converter_for("net.caffemodel")
    with pytest.raises(ConversionError, match=r"no installed converter reads \.xyz"):
        registry.converter_for("net.xyz")


@pytest.mark.parametrize(("value", "ids"), [("off", set()), ("alpha", {"alpha"}), ("alpha, beta", {"alpha", "beta"})])
def test_environment_limits_what_is_loaded(site: Path, monkeypatch: pytest.MonkeyPatch, value: str, ids: set[str]) -> None:
    install(site, "alpha", backend("alpha"))
    install(site, "beta", backend("beta"))
    monkeypatch.setenv("MNN_PLUGINS", value)
    registry = Registry()
    assert {p.id for p in registry.infos()} == ids
    with pytest.raises(BackendError, match="MNN_PLUGINS"):
        registry.backend_class("gamma")


def test_hook_with_wrong_arguments_breaks_only_its_plugin(site: Path) -> None:
    install(site, "wrong-hook", "import mnn_core\n@mnn_core.hookimpl\ndef mnn_backend(nonsense): pass")
    registry = Registry()
    with pytest.raises(BackendError, match="nonsense"):
        registry.backend_class("wrong-hook")
    assert info(registry, "wrong-hook").state == "broken"


def run(site: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]), **env}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=variables)


def test_twenty_plugins_of_which_two_are_broken(tmp_path: Path) -> None:
    for i in range(18):
        install(tmp_path, f"dummy-{i}", backend(f"dummy-{i}"))
    install(tmp_path, "dummy-raises", "raise ValueError('bad day')")
    install(tmp_path, "dummy-library", "import ctypes; ctypes.CDLL('libabsent.so')")
    listed = run(tmp_path, "-m", "mnn_core.cli.main", "plugins", "list", "--json")
    assert listed.returncode == 0, listed.stderr
    found = {p["id"]: p for p in json.loads(listed.stdout)}
    assert all(found[f"dummy-{i}"]["state"] == "ready" for i in range(18))
    assert found["dummy-raises"]["reason"] == "ValueError: bad day"
    assert "libabsent.so" in found["dummy-library"]["reason"]
    quick = run(tmp_path, "-c", "import mnn_core, sys; print([m for m in sys.modules if m.startswith('dummy')])")
    assert quick.stdout.strip() == "[]"


def test_import_is_light() -> None:
    """No plugin, and none of the core's own heavy parts, is imported by `import mnn_core`."""
    code = "import mnn_core, sys; print(*sorted(m for m in sys.modules if m.startswith('mnn_')))"
    loaded = run(Path("."), "-c", code).stdout.split()
    assert not {m for m in loaded if not m.startswith("mnn_core")}
    assert not {"mnn_core.ops", "mnn_core.plan", "mnn_core.session", "mnn_core.formats"} & set(loaded)


def test_new_plugin_package_is_complete(tmp_path: Path) -> None:
    made = run(tmp_path, "-m", "mnn_core.cli.main", "plugins", "new", "mnn-shiny-thing", "--folder", str(tmp_path))
    assert made.returncode == 0, made.stderr
    root = tmp_path / "mnn-shiny-thing"
    module = (root / "mnn_shiny_thing" / "__init__.py").read_text()
    site = tmp_path / "site"
    site.mkdir()
    install(site, "mnn-shiny-thing", module, group="mnn.ops", id="shiny_thing")
    tested = run(site, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(root), str(root / "tests"))
    assert tested.returncode == 0, tested.stdout + tested.stderr
    again = run(tmp_path, "-m", "mnn_core.cli.main", "plugins", "new", "mnn-shiny-thing", "--folder", str(tmp_path))
    assert again.returncode == 3
    assert "exists already" in again.stderr


def test_errors_are_kept_with_their_traceback(site: Path) -> None:
    install(site, "deep", "def f(): raise KeyError('deep inside')\nf()")
    registry = Registry()
    with pytest.raises(PluginError) as caught:
        registry.load(info(registry, "deep"))
    assert isinstance(caught.value.__cause__, KeyError)
