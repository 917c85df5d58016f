"""The collector's commands as processes: the link that logs in,
and settings from the environment.
"""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from sottovoce.store import open_store
from tests.cli.helpers import Command, Files, refused
from tests.service.processes import running

SETTINGS = ("STORE", "HOST", "PORT", "RATE_LIMIT", "ORIGIN", "PROXY", "METRICS")


def test_a_studio_on_this_computer_prints_a_link_that_logs_in_once(tmp_path: Path) -> None:
    with running(["studio", "--store", f"sqlite:///{tmp_path}/s.db", "--port", "0"]) as studio:
        page = f"{studio.url}/studio"
        assert studio.first == f"Listening at {page}"
        assert httpx.get(f"{page}/").status_code == 303  # nobody has logged in
        words, link = studio.next_line().rsplit(" ", 1)
        assert words == "To log in, open this once:"
        assert re.fullmatch(re.escape(page) + r"/login\?code=[\w-]{43}", link)
        with httpx.Client(follow_redirects=True) as browser:
            assert browser.get(link).url.path == "/studio/"
            assert browser.get(f"{page}/new").status_code == 200
        assert httpx.get(link).status_code == 401


@pytest.mark.parametrize("reachable", [("--proxy", "127.0.0.1"), ("--host", "0.0.0.0")])
def test_a_studio_that_others_can_reach_prints_no_link(
    tmp_path: Path, reachable: tuple[str, str]
) -> None:
    with running(
        ["studio", "--store", f"sqlite:///{tmp_path}/s.db", "--port", "0", *reachable]
    ) as studio:
        assert httpx.get(f"http://127.0.0.1:{studio.port}/studio/").status_code == 303
        studio.process.terminate()
        assert studio.next_line() == ""


def test_there_is_no_studio_without_tokens(sottovoce: Command) -> None:
    refused(sottovoce("studio", "--no-token"), "--no-token")


def test_settings_come_from_the_environment_too(tmp_path: Path) -> None:
    settings = {
        "SOTTOVOCE_STORE": f"sqlite:///{tmp_path}/environment.db",
        "SOTTOVOCE_HOST": "127.0.0.1",
        "SOTTOVOCE_PORT": "0",
        "SOTTOVOCE_RATE_LIMIT": "0.000001",
        "SOTTOVOCE_ORIGIN": "https://one.example https://two.example",
        "SOTTOVOCE_PROXY": "127.0.0.1 10.0.0.0/8",
        "SOTTOVOCE_METRICS": "off",
    }
    with running(["serve"], settings) as collector:
        assert (tmp_path / "environment.db").exists()

        def ask(path: str, client: str, origin: str = "https://two.example") -> httpx.Response:
            return httpx.get(
                collector.url + path, headers={"X-Forwarded-For": client, "Origin": origin}
            )

        plan = "/v1/plans/" + "0" * 64
        assert [ask(plan, f"198.51.100.{number}").status_code for number in (1, 2, 1)] == [
            404,
            404,
            429,
        ]
        assert (
            ask(plan, "198.51.100.3").headers["access-control-allow-origin"]
            == "https://two.example"
        )
        assert (
            "access-control-allow-origin"
            not in ask(plan, "198.51.100.4", "https://three.example").headers
        )
        assert ask("/metrics", "198.51.100.5").status_code == 404


def test_the_command_line_wins(tmp_path: Path) -> None:
    settings = {
        "SOTTOVOCE_STORE": f"sqlite:///{tmp_path}/environment.db",
        "SOTTOVOCE_METRICS": "off",
    }
    arguments = [
        "serve",
        "--store",
        f"sqlite:///{tmp_path}/line.db",
        "--port",
        "0",
        "--metrics",
        "public",
    ]
    with running(arguments, settings) as collector:
        assert (tmp_path / "line.db").exists()
        assert not (tmp_path / "environment.db").exists()
        assert httpx.get(f"{collector.url}/metrics").status_code == 200


@pytest.mark.parametrize("command", ["serve", "studio"])
def test_help_and_documentation_name_every_setting(sottovoce: Command, command: str) -> None:
    shown = sottovoce(command, "--help").out
    documented = (Path(__file__).parents[2] / "docs" / "collector.md").read_text()
    for name in SETTINGS:
        assert f"SOTTOVOCE_{name}" in shown
        assert f"`SOTTOVOCE_{name}`" in documented


def test_a_bad_setting_is_refused_wherever_it_comes_from(
    sottovoce: Command, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = f"sqlite:///{files.folder}/s.db"
    refused(sottovoce("serve", "--store", store, "--proxy", "*"), "proxy (*)")
    refused(sottovoce("serve", "--store", store, "--metrics", "open"), "metrics (open)")
    hop = "https://shuffler.example/hop"
    refused(sottovoce("studio", "--store", store, "--shuffler", hop), f"shuffler ({hop})")
    monkeypatch.setenv("SOTTOVOCE_PORT", "many")
    refused(sottovoce("serve", "--store", store), "SOTTOVOCE_PORT")


def test_a_store_from_the_environment(
    sottovoce: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOTTOVOCE_STORE", f"sqlite:///{tmp_path}/s.db")
    assert sottovoce("token", "--name", "alice").out.startswith("svt_")
    with open_store(f"sqlite:///{tmp_path}/s.db") as store:
        assert [token.name for token in store.tokens()] == ["alice"]
    assert sottovoce("token", f"sqlite:///{tmp_path}/other.db", "--list").out == ""
