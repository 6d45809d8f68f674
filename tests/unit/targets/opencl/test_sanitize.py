import numpy as np
import pytest
from small_kernels import SOURCES, kernel, launch, variant

from mb_targets.model import LaunchChange, Variant
from mb_targets.opencl import sanitize
from mb_targets.opencl.sanitize import MEMORY, RACES, UNINITIALISED

ALL = (MEMORY, RACES, UNINITIALISED)
N = 64


def check(name, of, spec=None, options=(), **others):
    given = {"a": np.arange(N, dtype=np.float32).tobytes(), "o": b"\xa5" * 4 * N, **others}
    return sanitize.run(
        name, of if isinstance(of, Variant) else variant(of), options, spec or launch(N), given
    )


FINDINGS = [
    ("oob_read", MEMORY, "Invalid read of size 4 at global memory: line 3 `o[i] = a[i + 1];`"),
    ("oob_write", MEMORY, "Invalid write of size 4 at global memory: line 3"),
    ("oob_local", MEMORY, "Invalid write of size 4 at local memory: line 4 `t[l + 1] = a[l];`"),
    ("oob_private", MEMORY, "Invalid write of size 4 at private memory: line 3"),
    ("misaligned", MEMORY, "not aligned"),
    ("divergent_barrier", MEMORY, "only 8 out of 16 work-items executed barrier"),
    ("barrier_after_return", MEMORY, "only 12 out of 16 work-items executed barrier"),
    ("race_global", RACES, "data race at global memory: line 3 `o[0] += a[i];`"),
    ("race_local", RACES, "Read-write data race at local memory: line 5"),
    ("race_missing_barrier", RACES, "Read-write data race at local memory: line 8"),
    ("race_between_groups", RACES, "Read-write data race at global memory"),
    ("writes_input", RACES, ""),
    ("uninitialised_local", UNINITIALISED, "Uninitialized value written to global memory: line 6"),
    ("uninitialised_private", UNINITIALISED, "Uninitialized value written to global memory: line 4"),
]


@pytest.mark.needs("oclgrind")
@pytest.mark.parametrize(("name", "by", "said"), FINDINGS)
def test_each_bug_is_found_by_its_check(name, by, said):
    assert said in (check(by, name) or "")


@pytest.mark.needs("oclgrind")
@pytest.mark.parametrize("by", ALL)
@pytest.mark.parametrize("name", ["good", "tiled", "talkative"])
def test_right_kernels_pass_every_check(name, by):
    assert check(by, name) == ""


@pytest.mark.needs("oclgrind")
def test_finding_names_both_items_of_a_race():
    found = check(RACES, "race_missing_barrier")
    assert found is not None
    assert found.count("work item") == 2


@pytest.mark.needs("oclgrind")
def test_launch_without_a_work_group_size_is_checked():
    assert "Invalid read" in (check(MEMORY, "oob_read", launch(N, None)) or "")


@pytest.mark.needs("oclgrind")
def test_local_arguments_scalars_and_options_reach_the_simulator():
    source = (
        "__kernel void k(__global const float *a, __global float *o, __local float *t, uchar b, double d) {"
        " t[get_local_id(0)] = a[get_global_id(0)]; if (b == 200 && d == 0.5 && TWO == 2)"
        " o[get_global_id(0)] = t[get_local_id(0)]; else o[-1] = 0; }"
    )
    spec = launch(
        N,
        order=("a", "o", "t", "b", "d"),
        dtypes={"a": "f32", "o": "f32", "b": "u8", "d": "f64"},
        scalars={"b": 200, "d": 0.5},
        local_bytes={"t": 64},
    )
    assert check(MEMORY, Variant(source, "k"), spec, ["-DTWO=2"]) == ""


@pytest.mark.needs("oclgrind")
def test_buffers_of_odd_sizes_are_exact():
    source = "__kernel void k(__global const uchar *a, __global uchar *o) { o[0] = a[2]; o[0] = a[3]; }"
    spec = launch(1, 1, order=("a", "o"), dtypes={"a": "u8", "o": "u8"}, buffers={"a": 3, "o": 1})
    found = check(MEMORY, Variant(source, "k"), spec, a=b"abc", o=b"x")
    assert "Invalid read of size 1" in (found or "")


@pytest.mark.needs("oclgrind")
def test_access_to_an_empty_buffer_is_found():
    spec = launch(N, buffers={"a": 0, "o": 4 * N})
    assert check(MEMORY, "good", spec, a=b"") != ""


@pytest.mark.needs("oclgrind")
def test_source_that_the_simulator_cannot_build_was_not_checked():
    source = "__kernel void k(__global float *o) { o[0] = work_group_reduce_add(1.0f); }"
    spec = launch(1, 1, order=("o",), buffers={"o": 4})
    assert check(MEMORY, Variant(source, "k"), spec, o=bytes(4)) is None


def test_without_the_simulator_nothing_was_checked(monkeypatch):
    monkeypatch.setattr(sanitize.runtimes, "oclgrind", lambda: None)
    assert check(MEMORY, "good") is None


def test_empty_launch_has_nothing_to_find():
    assert check(RACES, "good", launch(N, None, global_size=(0,))) in ("", None)


GOOD = SOURCES["good"]


def called_for(source, **changes):
    return sanitize.called_for(kernel(GOOD), Variant(source, "k", **changes))


def test_nothing_is_called_for_by_the_same_mapping():
    assert called_for(GOOD.replace("a[i] * 2", "a[i] + a[i]")) == ()


def test_wider_index_type_calls_for_nothing():
    assert called_for(GOOD.replace("int i", "size_t i")) == ()


def test_words_in_comments_call_for_nothing():
    assert called_for(GOOD.replace("int i", "/* local barrier */ int i")) == ()


@pytest.mark.parametrize(
    "line",
    [
        "__local float t[16];",
        "barrier(CLK_LOCAL_MEM_FENCE);",
        "atomic_add((volatile __global int *)o, 1);",
        "float t[4];",
        "o[i] = sub_group_reduce_add(a[i]);",
    ],
)
def test_constructs_by_which_items_meet_call_for_every_check(line):
    assert called_for(GOOD.replace("  int i", f"  {line}\n  int i")) == ALL


def test_other_mapping_calls_for_bounds_and_races():
    assert called_for(GOOD.replace("get_global_id(0)", "4 * get_global_id(0)")) == (MEMORY, RACES)


def test_other_launch_calls_for_bounds_and_races():
    assert called_for(GOOD, launch=LaunchChange(("G0",), (64,))) == (MEMORY, RACES)


@pytest.mark.parametrize("line", ["float t;", "int a = 1, b;", "float4 t, u = 0;"])
def test_other_launch_with_a_variable_without_a_value_calls_for_every_check(line):
    source = GOOD.replace("  int i", f"  {line}\n  int i")
    assert called_for(source, launch=LaunchChange(("G0",), (64,))) == ALL
