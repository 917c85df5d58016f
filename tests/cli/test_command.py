"""The installed command as a process: start-up, help, interruption, pipes, and the demo."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from time import sleep

import pytest

import sottovoce as sv
from tests.cli.helpers import Command, Files, write_csv

COMMAND = str(Path(sys.executable).with_name("sottovoce"))
COMMANDS = (
    "plan",
    "whisper",
    "estimate",
    "associate",
    "tree",
    "synthesize",
    "audit",
    "advise",
    "oracles",
    "demo",
    "compare oracles",
    "compare marginals",
)


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, sottovoce.cli; sottovoce.cli.run(['--help']); "
        "print(sorted({'numpy', 'pyarrow', 'pandas', 'altair', 'numba', 'scipy'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert shown.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example(sottovoce: Command, name: str) -> None:
    example = f"sottovoce {name}"
    own = sottovoce(*name.split(), "--help")
    assert own.code == 0
    assert example in own.out
    assert example in sottovoce("--help").out


def test_version_and_bare_command(sottovoce: Command) -> None:
    assert sottovoce("--version").out == f"sottovoce {sv.__version__}\n"
    assert sottovoce() == sottovoce("--help")


def test_bad_input_of_the_process(tmp_path: Path) -> None:
    ended = subprocess.run([COMMAND, "plan", str(tmp_path / "none.toml")], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr == f"error: {tmp_path / 'none.toml'}: No such file or directory\n"


def _hear_interrupts() -> None:
    """A shell's background job ignores interrupts, and its children with it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_interruption_leaves_the_good_file(files: Files) -> None:
    good = files.reports.read_bytes()
    crowd = write_csv(files.folder / "crowd.csv", colour=["red"] * 1_000_000)
    arguments = [COMMAND, "whisper", str(files.plan), str(crowd), "-o", str(files.reports)]
    process = subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_hear_interrupts,  # noqa: PLW1509
    )
    while process.poll() is None and not list(files.folder.glob(".reports*")):
        sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert (out, "Traceback" in err) == ("", False)
    assert files.reports.read_bytes() == good
    assert not list(files.folder.glob(".reports*"))


def test_a_reader_that_leaves_early() -> None:
    line = f"{COMMAND} oracles --size 32 --epsilon 1 | head -n 1"
    ended = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in ended.stderr


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The demo's folder, which did not exist, and what it printed; it ends by itself."""
    folder = tmp_path_factory.mktemp("new") / "demo"
    ended = subprocess.run(
        [COMMAND, "demo", "--output", str(folder), "--seed", "5"], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return folder, ended.stdout


def test_demo_shows_the_whole_way(demo: tuple[Path, str]) -> None:
    folder, out = demo
    assert out.splitlines()[-1] == str(folder / "report.html")
    for words in (
        "56 tables of 3 attributes",  # the plan
        "Methods by predicted error",
        "does not fit",
        "Single attributes: 60,000 whispers heard",
        "age, drinks",
        "smoker, drinks, sleepless",
        "std error",
        "95% interval",
        "nats in all, 60,000 people",  # the tree
        "Strongest pairs",
        "What is popular: favourite dish",
        "What is popular: what is in the basket",
        "1 run of 20 random tables",  # the comparison
        "20,000 people posted over HTTP",
    ):
        assert words in out
    found = re.search(r"(\d+) of the 44 intervals shown hold the truth", out)
    assert found
    assert int(found[1]) >= 33  # misses come together: a quarter of the cells is far beyond what a survey may lose
    assert "no test of them" in " ".join(out.split())


def test_demo_measures_three_methods(demo: tuple[Path, str]) -> None:
    rows = re.findall(r"^ +1 +(auto|calm|inp-ht) +([\d.e-]+) +([\d.e-]+) ", demo[1], re.MULTILINE)
    assert [method for method, _, _ in rows] == ["auto", "calm", "inp-ht"]
    errors = {method: float(sse) for method, sse, _ in rows}
    assert errors["auto"] < errors["inp-ht"] / 2
    assert errors["calm"] < errors["inp-ht"]


def test_demo_finds_the_ties(demo: tuple[Path, str]) -> None:
    """Of the ties that the made-up people were given, the strongest is found wherever the tree hangs."""
    tree = demo[1][demo[1].index("What tells about what") : demo[1].index("nats in all")]
    assert re.search(r"(home[^\n]*\n[^\n]*── car)|(car[^\n]*\n[^\n]*── home)", tree)
    pairs = demo[1][demo[1].index("Strongest pairs") :]
    assert "home - car" in pairs
    assert re.search(r"home - car +0\.\d+ +0\.667", pairs)  # beside the truth


def test_demo_finds_what_is_popular(demo: tuple[Path, str]) -> None:
    shown = demo[1][demo[1].index("What is popular") : demo[1].rindex("tables of 3 attributes")]
    for value in ("pizza", "ramen", "curry", "bread", "milk", "eggs"):
        assert re.search(rf"^ +{value} +\* ", shown, re.MULTILINE)
    assert len(re.findall(r"\d+ of the true \d+ found", " ".join(shown.split()))) == 2


def test_demo_leaves_files_that_fit_together(demo: tuple[Path, str], sottovoce: Command, tmp_path: Path) -> None:
    folder, _ = demo
    plan = sv.Plan.from_json((folder / "plan.json").read_bytes())
    assert len(sv.Reports.read(folder / "reports.parquet")) == plan.people == 60_000
    assert (folder / "marginal.png").read_bytes().startswith(b"\x89PNG")
    again = sottovoce("plan", folder / "survey.toml", "-o", tmp_path / "plan.json")
    assert again.code == 0
    assert (tmp_path / "plan.json").read_bytes() == (folder / "plan.json").read_bytes()
    whispered = sottovoce(
        "whisper", folder / "plan.json", folder / "people.csv", "-o", tmp_path / "again.parquet", "--seed", 5
    )
    assert whispered.code == 0
    again_told = sv.Reports.read(tmp_path / "again.parquet")
    assert again_told == sv.Reports.read(folder / "reports.parquet")  # a seed decides every report


def test_demo_page_stands_alone(demo: tuple[Path, str]) -> None:
    folder, _ = demo
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 7  # single attributes, two, three, the tree, two that are popular, what was posted
    assert page.count("child_layer_2_marks") >= 2  # the truth's ticks
    plan = sv.Plan.from_json((folder / "plan.json").read_bytes())
    assert plan.id[:16] in page
    for words in ("How the planner chose", "inp-em does not fit", "What tells about what", "Three methods, measured"):
        assert words in page
    assert "prefers-color-scheme: dark" in page
    for trace in ("http://", "https://", "<script", "<link", "@import", "url(http", "src="):
        assert trace not in page
