"""What is published: the wheel runs where the repository is not, its demo too, and the npm package
is whole.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import tarfile
import urllib.request
import zipfile
from pathlib import Path

import pytest

import sottovoce as sv
from tests.browser.machines import HAS_NODE
from tests.packaging.installs import listening

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "js"
HAS_NPM = HAS_NODE and shutil.which("npm") is not None
OWN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


def outside() -> dict[str, str]:
    """The environment of somebody who has no checkout."""
    return {name: value for name, value in os.environ.items() if name not in OWN}


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=outside(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a source distribution, and of the wheel that was made from it alone."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    left_out = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", copy / "src", symlinks=True, ignore=left_out)
    shutil.copytree(CLIENT / "src", copy / "clients" / "js" / "src")
    run(sys.executable, "-m", "build", "--no-isolation", cwd=copy)
    return copy / "dist"


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (only,) = built.glob("*.whl")
    return only


def expected() -> dict[str, bytes]:
    """Every file that a wheel must hold."""
    package = ROOT / "src" / "sottovoce"
    found = {}
    for folder, _, names in os.walk(package, followlinks=True):
        for name in names:
            if not name.endswith((".pyc", ".nbi", ".nbc")):
                file = Path(folder) / name
                found[f"sottovoce/{file.relative_to(package)}"] = file.read_bytes()
    return found


def test_the_wheel_holds_every_file_and_no_other(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {info.filename: archive.read(info) for info in archive.infolist()}
        assert not [info for info in archive.infolist() if stat.S_ISLNK(info.external_attr >> 16)]
    inside = {name: data for name, data in held.items() if ".dist-info/" not in name}
    assert inside == expected()
    assert "sottovoce/studio/client/index.js" in inside
    (licence,) = [name for name in held if name.endswith(".dist-info/licenses/LICENSE")]
    assert held[licence] == (ROOT / "LICENSE").read_bytes()


def test_the_source_distribution_holds_files_where_the_repository_has_a_link(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    assert not [member.name for member in members if member.issym() or member.islnk()]
    names = {member.name.partition("/")[2] for member in members}
    assert {f"src/{name}" for name in expected()} <= names


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of an environment that has the wheel; the libraries are those of the tests, to
    save their copies.
    """
    folder = tmp_path_factory.mktemp("empty") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=wheel.parent)
    scripts = folder / "bin"
    place = run(
        scripts / "python",
        "-c",
        "import sysconfig; print(sysconfig.get_path('purelib'))",
        cwd=folder,
    ).strip()
    pip = (sys.executable, "-m", "pip", "--python", scripts / "python")
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=folder)
    libraries = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    Path(place, "libraries.pth").write_text("\n".join(dict.fromkeys(libraries)) + "\n")
    home = run(
        scripts / "python", "-c", "import sottovoce; print(sottovoce.__file__)", cwd=folder
    ).strip()
    assert Path(home).is_relative_to(place)
    _take_compiled(Path(home).parent / "kernels")
    return scripts


def _take_compiled(kernels: Path) -> None:
    """Spare a minute: loops that were compiled from the same bytes here need not be
    compiled again.
    """
    own = ROOT / "src" / "sottovoce" / "kernels"
    for file in own.glob("*.py"):
        assert file.read_bytes() == (kernels / file.name).read_bytes()
        shutil.copystat(file, kernels / file.name)  # numba goes by the time of change
    for compiled in own.glob("__pycache__/*.nb?"):
        (kernels / "__pycache__").mkdir(exist_ok=True)
        shutil.copy2(compiled, kernels / "__pycache__" / compiled.name)


def test_the_wheel_runs_the_studio(installed: Path, tmp_path: Path) -> None:
    arguments = ["studio", "--store", f"sqlite:///{tmp_path}/survey.db"]
    with listening(arguments, outside(), [str(installed / "sottovoce")]) as running:
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        assert b"There are no surveys yet" in opener.open(running.login()).read()
        assert b"<form" in opener.open(f"{running.url}/new").read()
        for path in ("static/studio.css", "static/make.js", "client/index.js"):
            assert (
                opener.open(f"{running.url}/{path}").read()
                == expected()[f"sottovoce/studio/{path}"]
            )


@pytest.mark.skipif(not HAS_NPM, reason="npm is missing: the package was not made")
def test_the_npm_package_is_whole_and_runs(tmp_path: Path) -> None:
    (packed,) = json.loads(run("npm", "pack", "--json", "--pack-destination", tmp_path, cwd=CLIENT))
    with tarfile.open(tmp_path / packed["filename"]) as archive:
        archive.extractall(tmp_path / "node_modules", filter="data")
    (tmp_path / "node_modules" / "package").rename(tmp_path / "node_modules" / "sottovoce")
    held = tmp_path / "node_modules" / "sottovoce"
    files = {str(file.relative_to(held)) for file in held.rglob("*") if file.is_file()}
    sources = {f"src/{file.name}" for file in (CLIENT / "src").iterdir()}
    assert files == sources | {"package.json", "README.md", "index.d.ts", "LICENSE"}
    plan = json.loads((ROOT / "tests" / "vectors" / "v1.json").read_text(encoding="utf-8"))[
        "plans"
    ][0]
    record = plan["good"][0]["record"]
    code = """
    import { Client, Plan } from "sottovoce";
    const [text, id, record] = JSON.parse(process.argv[1]);
    const report = await new Client(await Plan.parse(text, { id })).report(record);
    console.log(JSON.stringify(report.json));
    """
    given = json.dumps([plan["plan"], plan["id"], record])
    told = json.loads(run("node", "--input-type=module", "--eval", code, given, cwd=tmp_path))
    assert told["plan"] == plan["id"]


@pytest.mark.slow
@pytest.mark.parametrize("lock", ["collector", "all"])
def test_the_wheel_in_a_really_empty_environment(wheel: Path, tmp_path: Path, lock: str) -> None:
    """Every library from the package index, by the hashes of the lock."""
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    scripts = tmp_path / "venv" / "bin"
    pip = (scripts / "python", "-m", "pip", "install", "--quiet")
    run(*pip, "--require-hashes", "-r", ROOT / "deploy" / f"{lock}.lock", cwd=tmp_path)
    run(*pip, "--no-deps", "--no-index", wheel, cwd=tmp_path)
    run(scripts / "python", "-m", "pip", "check", cwd=tmp_path)
    store = f"sqlite:///{tmp_path}/survey.db"
    if lock == "all":
        run(scripts / "sottovoce", "demo", "--output", tmp_path / "demo", cwd=tmp_path)
    kind = "studio" if lock == "all" else "serve"
    with listening([kind, "--store", store], outside(), [str(scripts / "sottovoce")]) as running:
        health = running.url.partition("/studio")[0] + "/healthz"
        assert json.load(urllib.request.urlopen(health))["status"] == "ok"


@pytest.fixture(scope="module")
def demo(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The demo's folder, which did not exist, and what the wheel's demo printed;
    it ends by itself. A tenth of its people post.
    """
    folder = tmp_path_factory.mktemp("new") / "demo"
    fewer = "from sottovoce.demo import survey; survey.POSTING = 2_000"
    command = f"{fewer}; from sottovoce.cli import main; main()"
    arguments = ("demo", "--output", folder, "--seed", "5")
    return folder, run(installed / "python", "-c", command, *arguments, cwd=folder.parent)


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
        "2,000 people posted over HTTP",
    ):
        assert words in out
    found = re.search(r"(\d+) of the 44 intervals shown hold the truth", out)
    assert found
    # misses come together: a quarter of the cells is far beyond what a survey may lose
    assert int(found[1]) >= 33
    assert "no test of them" in " ".join(out.split())


def test_demo_measures_three_methods(demo: tuple[Path, str]) -> None:
    rows = re.findall(r"^ +1 +(auto|calm|inp-ht) +([\d.e-]+) +([\d.e-]+) ", demo[1], re.MULTILINE)
    assert [method for method, _, _ in rows] == ["auto", "calm", "inp-ht"]
    errors = {method: float(sse) for method, sse, _ in rows}
    assert errors["auto"] < errors["inp-ht"] / 2
    assert errors["calm"] < errors["inp-ht"]


def test_demo_finds_the_ties(demo: tuple[Path, str]) -> None:
    """Of the ties that the made-up people were given, the strongest is found wherever the tree
    hangs.
    """
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


def test_demo_leaves_files_that_fit_together(
    demo: tuple[Path, str], installed: Path, tmp_path: Path
) -> None:
    folder, _ = demo
    plan = sv.Plan.from_json((folder / "plan.json").read_bytes())
    assert len(sv.Reports.read(folder / "reports.parquet")) == plan.people == 60_000
    assert (folder / "marginal.png").read_bytes().startswith(b"\x89PNG")
    command = installed / "sottovoce"
    run(command, "plan", folder / "survey.toml", "-o", tmp_path / "plan.json", cwd=tmp_path)
    assert (tmp_path / "plan.json").read_bytes() == (folder / "plan.json").read_bytes()
    again = tmp_path / "again.parquet"
    run(
        command,
        "whisper",
        folder / "plan.json",
        folder / "people.csv",
        "-o",
        again,
        "--seed",
        "5",
        cwd=tmp_path,
    )
    again_told = sv.Reports.read(again)
    assert again_told == sv.Reports.read(folder / "reports.parquet")  # a seed decides every report


def test_demo_page_stands_alone(demo: tuple[Path, str]) -> None:
    folder, _ = demo
    page = (folder / "report.html").read_text(encoding="utf-8")
    # single attributes, two, three, the tree, two that are popular, what was posted
    assert page.count("<svg") == 9
    assert page.count("child_layer_2_marks") >= 2  # the truth's ticks
    plan = sv.Plan.from_json((folder / "plan.json").read_bytes())
    assert plan.id[:16] in page
    for words in (
        "How the planner chose",
        "inp-em does not fit",
        "What tells about what",
        "Three methods, measured",
    ):
        assert words in page
    assert "prefers-color-scheme: dark" in page
    for trace in ("http://", "https://", "<script", "<link", "@import", "url(http", "src="):
        assert trace not in page
