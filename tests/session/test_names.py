"""Public names, and the modules that are functions as well."""

import subprocess
import sys

import mnn_core as mnn


def test_every_public_name_is_there():
    for name in mnn.__all__:
        assert getattr(mnn, name) is not None
        assert name in dir(mnn)


def test_modules_stay_callable_once_they_are_imported():
    code = ("import mnn_core as mnn; from mnn_core import plugins, backends; from mnn_core.convert import read_graph\n"
            "assert callable(mnn.convert) and mnn.convert(mnn.Graph()) == mnn.Graph()\n"
            "assert 'numpy' in mnn.backends() and isinstance(mnn.plugins(), list)")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_is_light():
    code = "import sys, mnn_core; print([m for m in sys.modules if m.startswith('mnn_core.')], 'numpy' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert out.strip() == "['mnn_core.version'] False"
