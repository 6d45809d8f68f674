import subprocess
import sys
from pathlib import Path

import pytest

from mb_targets.errors import TargetUnavailable
from mb_targets.opencl import runtimes
from mb_targets.opencl.runtimes import Runtime


@pytest.fixture
def vendors(tmp_path, monkeypatch):
    """A vendors folder of this test's own, on a machine with no pip runtime and no GPU."""
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    monkeypatch.setattr(runtimes, "pip_intel", lambda: None)
    monkeypatch.setattr(runtimes, "gpu_present", lambda: False)

    def register(name, library):
        (tmp_path / f"{name}.icd").write_text(library)

    return register


def names():
    return [r.name for r in runtimes.installed()]


def test_machine_without_opencl_has_no_runtimes(vendors):
    assert names() == []


def test_missing_vendors_folder_is_no_error(monkeypatch, vendors):
    monkeypatch.setenv("OCL_ICD_VENDORS", "/does/not/exist")
    assert names() == []


@pytest.mark.parametrize("choice", ["", "pocl", "intel", "gpu", "cpu", "Adreno"])
def test_nothing_installed_says_what_to_install(vendors, choice):
    with pytest.raises(TargetUnavailable, match="install"):
        runtimes.pick(choice)


def test_findings_of_an_empty_machine_name_the_remedy(vendors):
    lines = {f.part: f for f in runtimes.findings()}
    assert not lines["OpenCL runtime"].works
    assert "pip install" in lines["OpenCL runtime"].remedy


def test_libraries_are_known_by_name(vendors):
    vendors("pocl", "libpocl.so.2.10.0\n")
    vendors("other", "libsomething.so")
    assert names() == ["pocl"]  # an unknown one counts as a GPU's, and there is none


def test_dangling_and_simulated_runtimes_are_left_out(vendors):
    vendors("intel", "/opt/placeholder/lib/libintelocl.so")
    vendors("simulator", "liboclgrind-rt-icd.so")
    vendors("emulator", "libintelocl_emu.so")
    assert names() == []


def test_gpu_comes_first_and_the_pip_runtime_before_pocl(vendors, monkeypatch):
    monkeypatch.setattr(runtimes, "gpu_present", lambda: True)
    monkeypatch.setattr(runtimes, "pip_intel", lambda: Path("/x/libintelocl.so"))
    vendors("a-pocl", "libpocl.so.2")
    vendors("nvidia", "libnvidia-opencl.so.1")
    assert names() == ["nvidia", "intel", "pocl"]


def test_best_choice_loads_gpus_and_one_cpu_runtime_to_fall_back_on(vendors, monkeypatch):
    monkeypatch.setattr(runtimes, "gpu_present", lambda: True)
    monkeypatch.setattr(runtimes, "pip_intel", lambda: Path("/x/libintelocl.so"))
    vendors("pocl", "libpocl.so.2")
    vendors("nvidia", "libnvidia-opencl.so.1")
    assert [r.name for r in runtimes.pick("")[0]] == ["nvidia", "intel"]


def test_named_choice_loads_just_that(vendors):
    vendors("pocl", "libpocl.so.2")
    vendors("other-pocl", "libpocl-other.so")
    chosen, text = runtimes.pick("pocl")
    assert [r.name for r in chosen] == ["pocl"]
    assert text == ""


def test_other_words_are_looked_for_in_device_names(vendors):
    vendors("pocl", "libpocl.so.2")
    assert runtimes.pick("EPYC")[1] == "epyc"


def test_environment_shows_only_the_chosen_runtimes(tmp_path):
    made = runtimes.environment([Runtime("pocl", "cpu", "libpocl.so.2", "")], tmp_path)
    files = list(Path(made["OCL_ICD_VENDORS"]).iterdir())
    assert [f.read_text() for f in files] == ["libpocl.so.2\n"]


def test_environment_keeps_caches_private_and_pins_the_work_group_method(tmp_path):
    made = runtimes.environment([], tmp_path)
    assert made["PYOPENCL_NO_CACHE"] == "1"
    assert Path(made["POCL_CACHE_DIR"]).is_relative_to(tmp_path)
    assert made["POCL_WORK_GROUP_METHOD"] == runtimes.WORK_GROUP_METHOD


@pytest.mark.needs("intel")
def test_pip_runtime_is_found_where_pip_put_it():
    found = runtimes.pip_intel()
    assert found is not None
    assert found.name == "libintelocl.so"


@pytest.mark.needs("pocl")
def test_debians_pocl_is_found():
    assert "pocl" in names()


@pytest.mark.needs("oclgrind")
def test_oclgrind_is_found():
    assert runtimes.oclgrind() is not None


def test_looking_for_runtimes_loads_none():
    program = (
        "import sys\nfrom mb_targets.opencl import runtimes\nruntimes.findings()\n"
        "print([m for m in ('pyopencl', 'numpy', 'clang') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
