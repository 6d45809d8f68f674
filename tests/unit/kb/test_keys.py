"""Packed states and ids: they round-trip, they sort, they fit."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import made_outcomes as made
from hypothesis import given
from hypothesis import strategies as st

from mb_kb import keys
from mb_targets.model import Action, State

NAME = st.text(st.characters(exclude_characters="\0,", exclude_categories=["Cs"]), min_size=1, max_size=5)
STATES = st.builds(
    State,
    family=NAME,
    access=st.lists(NAME, max_size=2).map(tuple),
    dtype=NAME,
    size_class=st.integers(-100, 100),
    intensity=st.integers(-100, 100),
    bottleneck=NAME,
    target=NAME,
    device=NAME,
)


def comparable(state: State) -> tuple[bytes | int, ...]:
    return tuple(f.encode() if isinstance(f, str) else f for f in keys.fields(state))


@given(STATES)
def test_a_state_reads_back_from_its_key(state: State) -> None:
    assert keys.unpack(keys.pack(state)[keys.EXACT]) == state


@given(STATES, STATES)
def test_keys_sort_as_the_fields_do(a: State, b: State) -> None:
    pair = keys.pack(a)[keys.EXACT], keys.pack(b)[keys.EXACT]
    assert (pair[0] < pair[1]) == (comparable(a) < comparable(b))


@given(STATES)
def test_each_level_is_the_beginning_of_the_next_finer_one(state: State) -> None:
    prefixes = [p[1:] for p in keys.pack(state)]
    assert all(finer.startswith(coarser) for coarser, finer in pairwise(prefixes))


@given(STATES, STATES)
def test_states_share_a_key_only_if_they_are_the_same(a: State, b: State) -> None:
    assert (keys.pack(a)[keys.EXACT] == keys.pack(b)[keys.EXACT]) == (a == b)


@given(st.text(max_size=400), st.text(max_size=400))
def test_names_of_any_length_give_keys_that_fit_and_differ(a: str, b: str) -> None:
    a, b = (x.encode(errors="ignore").decode() for x in (a, b))
    packed = [keys.pack(replace(made.STATE, family=n, device=n, target=n)) for n in (a, b)]
    assert len(packed[0][keys.EXACT]) < 490
    assert (packed[0] == packed[1]) == (a == b)


def test_devices_of_one_vendor_share_all_but_the_last_level() -> None:
    one, other = keys.pack(made.on("cpu-amd-zen4-pocl")), keys.pack(made.on("cpu-amd-zen5-pocl"))
    assert one[:-1] == other[:-1]


def test_devices_of_two_vendors_share_the_levels_up_to_the_target() -> None:
    one, other = keys.pack(made.on("cpu-amd-zen4-pocl")), keys.pack(made.on("gpu-nvidia-h200"))
    assert [a == b for a, b in zip(one, other, strict=True)] == [True] * 5 + [False] * 2


def test_ids_sort_by_time() -> None:
    ids = [keys.outcome_id(created, b"same") for created in (1.0, 1.5, 1e9, 2e9)]
    assert ids == sorted(ids)


def test_parameters_are_part_of_an_action() -> None:
    assert keys.action_key(Action("jam", ("y", "8"))) != keys.action_key(Action("jam", ("y8",)))


def test_a_state_is_described_for_people() -> None:
    assert keys.describe(made.STATE) == (
        "f32 contraction, strided and unit access, 1 MiB, 4 operations a byte, limited by memory, "
        "opencl on cpu-amd-zen4-pocl"
    )
