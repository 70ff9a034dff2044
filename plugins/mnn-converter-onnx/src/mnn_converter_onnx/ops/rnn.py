"""LSTM, GRU and RNN."""

from __future__ import annotations

from ..builder import Builder
from ..node import Node
from ..recurrent import layer, run
from ..rules import rule


@rule("LSTM", "GRU", "RNN", since=7)
def recurrent(node: Node, b: Builder) -> None:
    run(node, b, layer(node, b))
