"""Opening kernel libraries and choosing their rows."""

import pytest

import mnn_core as mnn
from mnn_core.runtime import KERNEL_ABI, NativeLibrary


def names(library, *types, op="test.Add"):
    return [row.name for row in library.rows(op, list(types), ["f32"])]


def test_a_library_tells_what_it_has(kit):
    library = kit.library
    assert (library.name, library.isas, library.block) == ("test-lib", ["hi", "lo"], 16)
    assert {"test.Add", "test.Loop"} <= library.op_types()


def test_rows_match_types_in_the_order_of_the_table(kit):
    library = kit.library
    assert names(library, "f32", "f32") == ["add_hi", "add_hi_b", "add_any"]  # blocks of 4 do not mix with blocks of 16
    assert names(library, "i32", "f32") == ["add_any"]
    assert names(library, "f32", None) == ["add_hi", "add_hi_b", "add_any"]
    assert names(library, "f32", "f32", "f32") == ["add_hi", "add_hi_b", "add_any"]  # the last type repeats
    assert names(library, "f32", "f32", "f64") == ["add_any"]
    assert [r.name for r in library.rows("test.Add", ["f32"], ["f64"])] == []
    assert names(library, "f32", op="test.Unknown") == []


def test_a_row_tells_layouts_and_inplace(kit):
    row = kit.library.rows("test.Add", ["f32", "f32"], ["f32"])[1]
    assert (row.isa, row.block, row.inplace, row.types) == ("hi", 16, 0, "f32,f32->f32")
    assert [row.layout_of_input(i, 3) for i in range(3)] == ["b", "p", "p"]
    assert row.layout_of_output(0) == "b"
    assert kit.library.rows("test.Add", ["i32"], ["f32"])[0].inplace == 3


def test_a_lower_isa_may_be_forced(kit):
    lower = NativeLibrary(kit.library.path, isa="lo")
    assert (names(lower, "f32", "f32"), lower.block) == (["add_lo_b", "add_any"], 4)
    with pytest.raises(mnn.BackendError, match=r"test-lib has nothing for 'never' on this machine; it has: hi, lo"):
        NativeLibrary(kit.library.path, isa="never")


@pytest.mark.parametrize(("abi", "remedy"), [(KERNEL_ABI + 1, "upgrade mnn-core"), (0, "upgrade the library")])
def test_another_abi_is_refused_with_both_numbers(build, abi, remedy):
    with pytest.raises(mnn.BackendError, match=rf"kernel ABI {abi}, this mnn_core has {KERNEL_ABI}; {remedy}"):
        NativeLibrary(build(f"ABI={abi}"))


def test_a_short_table_is_refused(build):
    with pytest.raises(mnn.BackendError, match=r"table of 8 bytes.*build it again"):
        NativeLibrary(build("SIZE=8"))


def test_what_is_no_kernel_library_is_refused_by_name(build, tmp_path):
    text = tmp_path / "text.so"
    text.write_text("no library at all")
    for path in (tmp_path / "missing.so", text):
        with pytest.raises(mnn.BackendError, match=path.name):
            NativeLibrary(path)
    with pytest.raises(mnn.BackendError, match=r"exports no mnn_kernels\(\)"):
        NativeLibrary(build("ENTRY=other"))
