"""What every target must do: one suite, which each target's test module subclasses whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from mb_agent.inputs import Fill, as_bytes, make
from mb_agent.worker import SharedInputs, WorkerProcess, share
from mb_targets import registry
from mb_targets.concrete import concretize
from mb_targets.errors import BuildError
from mb_targets.model import Device, DocumentEdits, Kernel, LaunchSpec, NotApplicable, Proposal, Variant
from mb_targets.protocol import Launch, RunResult, Target

BUILD_SECONDS = 60.0


@dataclass(frozen=True)
class Documents:
    """Texts of one language that the suite is run on.

    Attributes:
        language: LSP language id.
        suffix: Of a file of that language.
        whole: Several kernels, each with a launch over the sizes of ``size``, each writing a buffer.
        respaced: The same with other comments and spacing.
        recoded: The same kernels, each computing something else.
        renamed: The same with other names for the kernels' variables.
        broken: The same with the last kernel left unfinished.
        faulty: A kernel that the compiler refuses.
        faulty_line: The line, counted from 1, that it must name.
        size: Name of the symbol that the first kernel's launch grows with.
    """

    language: str
    suffix: str
    whole: str
    respaced: str
    recoded: str
    renamed: str
    broken: str
    faulty: str
    faulty_line: int
    size: str


class TargetSuite:
    """Subclass it with the target's name, its documents, a device to propose for, a ``choice`` fixture."""

    name: ClassVar[str]
    documents: ClassVar[Documents]
    proposing_for: ClassVar[Device]

    @pytest.fixture(scope="class")
    @classmethod
    def target(cls) -> Target:
        return registry.load(cls.name)

    @pytest.fixture(scope="class")
    @classmethod
    def kernels(cls, target: Target) -> list[Kernel]:
        return cls.found(target, cls.documents.whole)

    @pytest.fixture(scope="class")
    @classmethod
    def variants(cls, target: Target, kernels: list[Kernel]) -> list[tuple[Kernel, LaunchSpec, Variant]]:
        return [(k, spec, made) for k, spec, _, made in cls.applied(target, kernels)]

    @pytest.fixture(scope="class")
    @classmethod
    def side(cls, choice: str) -> Iterator[WorkerProcess]:
        with WorkerProcess(cls.name, choice) as process:
            yield process

    @classmethod
    def found(cls, target: Target, text: str) -> list[Kernel]:
        return list(target.find_kernels(text, cls.documents.language))

    @classmethod
    def launch(cls, target: Target, kernel: Kernel) -> LaunchSpec:
        spec = target.infer_launch(kernel, None)
        assert isinstance(spec, LaunchSpec), spec
        return spec

    @classmethod
    def proposed(
        cls, target: Target, kernels: list[Kernel]
    ) -> Iterator[tuple[Kernel, LaunchSpec, Variant, Proposal]]:
        """Give each proposal for the originals, and for one variant of each."""
        for kernel in kernels:
            spec, original = cls.launch(target, kernel), Variant(kernel.source, kernel.name)
            proposals = target.propose(kernel, spec, cls.proposing_for, original)
            for p in proposals:
                yield kernel, spec, original, p
            for p in proposals:
                made = target.apply(kernel, spec, cls.proposing_for, original, p.action)
                if isinstance(made, Variant):
                    for more in target.propose(kernel, spec, cls.proposing_for, made):
                        yield kernel, spec, made, more
                    break

    @classmethod
    def applied(
        cls, target: Target, kernels: list[Kernel]
    ) -> Iterator[tuple[Kernel, LaunchSpec, Proposal, Variant]]:
        """Give each variant that those proposals lead to."""
        for kernel, spec, parent, p in cls.proposed(target, kernels):
            made = target.apply(kernel, spec, cls.proposing_for, parent, p.action)
            if isinstance(made, Variant):
                yield kernel, spec, p, made

    # The server half.

    def test_its_registry_name_is_its_own(self, target: Target) -> None:
        assert target.name == self.name

    def test_it_reads_the_language_and_suffix_of_its_documents(self, target: Target) -> None:
        assert self.documents.language in target.languages
        assert self.documents.suffix in target.suffixes

    def test_spans_of_kernels_lie_in_the_document(self, kernels: list[Kernel]) -> None:
        text = self.documents.whole
        assert len(kernels) > 1
        for k in kernels:
            assert text[k.offset + k.start : k.offset + k.end] == k.text
            assert k.name in k.text

    def test_kernels_come_in_order_and_do_not_overlap(self, kernels: list[Kernel]) -> None:
        ends = [(k.offset + k.start, k.offset + k.end) for k in kernels]
        assert all(end <= start for (_, end), (start, _) in pairwise(ends))

    def test_parameters_come_in_order(self, kernels: list[Kernel]) -> None:
        for k in kernels:
            in_order = r"\b.*\b".join(re.escape(p.name) for p in k.parameters)
            assert k.parameters
            assert re.search(rf"\(.*\b{in_order}\b.*\)", k.text, re.DOTALL)

    def test_a_broken_document_gives_the_kernels_that_are_whole(
        self, target: Target, kernels: list[Kernel]
    ) -> None:
        found = self.found(target, self.documents.broken)
        assert [k.name for k in found] == [k.name for k in kernels[:-1]]

    @pytest.mark.parametrize("text", ["", "\0", "((((", "/*", '"'])
    def test_a_document_without_kernels_gives_none(self, target: Target, text: str) -> None:
        assert self.found(target, text) == []

    def test_identity_ignores_comments_and_spacing(self, target: Target, kernels: list[Kernel]) -> None:
        respaced = self.found(target, self.documents.respaced)
        assert [k.identity for k in respaced] == [k.identity for k in kernels]

    def test_identity_changes_with_the_code(self, target: Target, kernels: list[Kernel]) -> None:
        recoded = self.found(target, self.documents.recoded)
        assert len(recoded) == len(kernels)
        assert not {k.identity for k in recoded} & {k.identity for k in kernels}

    def test_features_are_64_small_counts(self, target: Target, kernels: list[Kernel]) -> None:
        for k in kernels:
            features = target.features(k)
            assert len(features) == 64
            assert all(isinstance(f, int) and 0 <= f <= 255 for f in features)

    def test_features_do_not_depend_on_names(self, target: Target, kernels: list[Kernel]) -> None:
        renamed = self.found(target, self.documents.renamed)
        assert [list(target.features(k)) for k in renamed] == [list(target.features(k)) for k in kernels]

    def test_a_launch_has_an_argument_for_each_parameter(self, target: Target, kernels: list[Kernel]) -> None:
        for k in kernels:
            assert [a.name for a in self.launch(target, k).arguments] == [p.name for p in k.parameters]

    def test_the_description_of_a_launch_gives_it_again(self, target: Target, kernels: list[Kernel]) -> None:
        for k in kernels:
            spec = self.launch(target, k)
            (again,) = self.found(target, f"{target.describe_launch(k, spec)}\n{k.text}\n")
            assert without_origins(self.launch(target, again)) == without_origins(spec)

    def test_the_state_names_target_and_device(self, target: Target, kernels: list[Kernel]) -> None:
        for k in kernels:
            state = target.state(k, self.launch(target, k), self.proposing_for)
            assert (state.target, state.device) == (self.name, self.proposing_for.key)
            assert state.access == tuple(sorted(state.access))

    def test_there_is_something_to_try(self, variants: list[tuple[Kernel, LaunchSpec, Variant]]) -> None:
        assert {k.name for k, _, _ in variants} == {
            k.name for k in self.found(registry.load(self.name), self.documents.whole)
        }

    def test_each_proposal_says_why_and_what_it_expects(self, target: Target, kernels: list[Kernel]) -> None:
        for _, _, _, p in self.proposed(target, kernels):
            assert p.reason
            assert p.expected > 0

    def test_nothing_is_proposed_twice(self, target: Target, kernels: list[Kernel]) -> None:
        for k in kernels:
            original = Variant(k.source, k.name)
            found = target.propose(k, self.launch(target, k), self.proposing_for, original)
            assert len({str(p.action) for p in found}) == len(found)

    def test_what_is_proposed_applies_or_says_why_not(self, target: Target, kernels: list[Kernel]) -> None:
        for kernel, spec, parent, p in self.proposed(target, kernels):
            made = target.apply(kernel, spec, self.proposing_for, parent, p.action)
            assert isinstance(made, Variant) or made.reason, p.action

    def test_a_chain_ends_with_the_action_applied(self, target: Target, kernels: list[Kernel]) -> None:
        for kernel, spec, parent, p in self.proposed(target, kernels):
            made = target.apply(kernel, spec, self.proposing_for, parent, p.action)
            if isinstance(made, Variant):
                *before, last = made.chain
                assert last == p.action
                # what the action sets again may be gone; the rest keeps its order
                assert before == [a for a in parent.chain if a in before]

    def test_an_unknown_action_is_not_applicable(self, target: Target, kernels: list[Kernel]) -> None:
        kernel = kernels[0]
        spec, original = self.launch(target, kernel), Variant(kernel.source, kernel.name)
        action = replace(next(self.proposed(target, kernels))[3].action, id="nosuch")
        made = target.apply(kernel, spec, self.proposing_for, original, action)
        assert isinstance(made, NotApplicable)

    def test_applying_leaves_the_original_as_it_was(self, target: Target, kernels: list[Kernel]) -> None:
        originals = [Variant(k.source, k.name) for k in kernels]
        before = [v.hash for v in originals]
        for kernel, original in zip(kernels, originals, strict=True):
            spec = self.launch(target, kernel)
            for p in target.propose(kernel, spec, self.proposing_for, original):
                target.apply(kernel, spec, self.proposing_for, original, p.action)
        assert [v.hash for v in originals] == before
        assert self.found(target, self.documents.whole) == kernels

    def test_a_variant_changes_something(self, variants: list[tuple[Kernel, LaunchSpec, Variant]]) -> None:
        for kernel, _, variant in variants:
            assert variant.hash != Variant(kernel.source, kernel.name).hash, variant.chain

    def test_a_variant_holds_the_kernel_it_names(
        self, target: Target, variants: list[tuple[Kernel, LaunchSpec, Variant]]
    ) -> None:
        for _, _, variant in variants:
            assert [k.name for k in self.found(target, variant.source)].count(variant.name) == 1

    def test_edits_make_the_variants_text(
        self, target: Target, variants: list[tuple[Kernel, LaunchSpec, Variant]], tmp_path: Path
    ) -> None:
        path = tmp_path / f"kernels{self.documents.suffix}"
        text = self.documents.whole
        path.write_text(text)
        written = 0
        for kernel, spec, variant in variants:
            made = target.patch(kernel, spec, variant, path, text)
            if isinstance(made, NotApplicable):
                assert made.reason
                continue
            new = next((applied(d, text) for d in made if d.path == str(path)), text)
            assert self.text_of(target, new, kernel.name) == self.text_of(
                target, variant.source, variant.name
            ), variant.chain
            written += 1
        assert written

    def test_edits_of_a_kernel_that_has_changed_are_not_applicable(
        self, target: Target, variants: list[tuple[Kernel, LaunchSpec, Variant]], tmp_path: Path
    ) -> None:
        kernel, spec, variant = variants[0]
        path = tmp_path / f"kernels{self.documents.suffix}"
        made = target.patch(kernel, spec, variant, path, self.documents.recoded)
        assert isinstance(made, NotApplicable)

    def text_of(self, target: Target, document: str, name: str) -> str:
        return next(k.text for k in self.found(target, document) if k.name == name)

    # The worker half, in a process of its own as it always runs.

    def built(
        self, target: Target, kernel: Kernel, side: WorkerProcess, sizes: dict[str, float] | None = None
    ) -> tuple[int, Launch, SharedInputs]:
        spec = self.launch(target, kernel)
        launch = concretize(kernel, spec, sizes, None)
        original = Variant(kernel.source, kernel.name)
        handle = side.build(original, spec.options, Path.cwd(), limit=BUILD_SECONDS)
        return handle, launch, share(as_bytes(make(spec, launch, Fill("normal", 5))))

    def run(self, target: Target, kernel: Kernel, side: WorkerProcess, **sizes: float) -> RunResult:
        handle, launch, inputs = self.built(target, kernel, side, sizes)
        return side.run(handle, launch, inputs)

    def test_the_device_is_described(self, side: WorkerProcess) -> None:
        device = side.device()
        assert device.key.startswith(f"{device.kind}-")
        assert device.name
        assert device.driver
        assert device.toolchain
        assert device.compute_units >= 1
        assert device.max_work_group >= 1

    def test_a_second_process_describes_the_same_device(self, side: WorkerProcess) -> None:
        with WorkerProcess(self.name, side.choice) as other:
            assert other.device() == side.device()

    def test_a_run_gives_every_written_buffer_whole(
        self, target: Target, kernels: list[Kernel], side: WorkerProcess
    ) -> None:
        for kernel in kernels:
            handle, launch, inputs = self.built(target, kernel, side)
            outputs = side.run(handle, launch, inputs).outputs
            assert {n: len(b) for n, b in outputs.items()} == {n: launch.buffers[n] for n in launch.written}

    def test_a_run_leaves_its_inputs_untouched(
        self, target: Target, kernels: list[Kernel], side: WorkerProcess
    ) -> None:
        for kernel in kernels:
            assert self.run(target, kernel, side).changed_inputs == ()

    def test_a_run_on_the_same_bytes_gives_the_same_bytes(
        self, target: Target, kernels: list[Kernel], side: WorkerProcess
    ) -> None:
        for kernel in kernels:
            handle, launch, inputs = self.built(target, kernel, side)
            first, second = (side.run(handle, launch, inputs) for _ in range(2))
            assert first.outputs == second.outputs

    def test_a_run_agrees_with_the_float64_reference(
        self, target: Target, kernels: list[Kernel], side: WorkerProcess
    ) -> None:
        for kernel in kernels:
            spec = self.launch(target, kernel)
            launch = concretize(kernel, spec, None, None)
            values = make(spec, launch, Fill("normal", 5))
            expected = target.reference(kernel, spec, launch, values)
            assert expected is not None
            outputs = self.run(target, kernel, side).outputs
            for name, wanted in expected.items():
                got = np.frombuffer(outputs[name], values[name].dtype).astype(np.float64)
                np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)

    def test_a_source_that_does_not_compile_is_a_build_error_with_its_line(
        self, target: Target, side: WorkerProcess
    ) -> None:
        faulty = Variant(self.documents.faulty, self.found(target, self.documents.faulty)[0].name)
        with pytest.raises(BuildError, match=rf"\b{self.documents.faulty_line}\b"):
            side.build(faulty, (), Path.cwd(), limit=BUILD_SECONDS)

    def test_a_kernel_that_is_not_in_the_source_is_a_build_error(
        self, kernels: list[Kernel], side: WorkerProcess
    ) -> None:
        with pytest.raises(BuildError):
            side.build(Variant(kernels[0].source, "nosuch"), (), Path.cwd(), limit=BUILD_SECONDS)

    @pytest.mark.parametrize("launches", [1, 5])
    def test_timing_gives_a_positive_sample(
        self, target: Target, kernels: list[Kernel], side: WorkerProcess, launches: int
    ) -> None:
        handle, launch, inputs = self.built(target, kernels[0], side)
        side.prepare(handle, launch, inputs, launches)
        sample = side.time(handle)
        assert sample.launches == launches
        assert sample.event_ns > 0

    def test_size_zero_launches_nothing(
        self, target: Target, kernels: list[Kernel], side: WorkerProcess
    ) -> None:
        outputs = self.run(target, kernels[0], side, **{self.documents.size: 0}).outputs
        assert set(outputs.values()) == {b""}

    def test_size_one_runs(self, target: Target, kernels: list[Kernel], side: WorkerProcess) -> None:
        assert all(self.run(target, kernels[0], side, **{self.documents.size: 1}).outputs.values())


def without_origins(spec: LaunchSpec) -> LaunchSpec:
    """Forget where each part of a launch came from."""
    return replace(
        spec,
        origin="comment",
        symbols=tuple(replace(s, origin="comment") for s in spec.symbols),
        arguments=tuple(replace(a, origin="comment") for a in spec.arguments),
    )


def applied(document: DocumentEdits, text: str) -> str:
    """Apply edits to a text; they are in order and do not overlap."""
    out, at = [], 0
    for e in document.edits:
        assert at <= e.start <= e.end <= len(text)
        out += [text[at : e.start], e.text]
        at = e.end
    return "".join([*out, text[at:]])
