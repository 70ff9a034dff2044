"""A run that another thread stops."""

import threading

import numpy as np
import pytest
from graphs import graph

import mnn_core as mnn


def test_another_thread_cancels_a_run():
    model = mnn.load(graph([f"t{i + 1} = Sleep(t{i})" for i in range(40)], ["t0"], ["t40"]), "numpy")
    token = mnn.CancelToken()
    timer = threading.Timer(0.1, token.cancel)
    timer.start()
    with pytest.raises(mnn.CancelledError):
        model.run({"t0": np.zeros(1, np.float32)}, cancel=token)
    timer.join()
