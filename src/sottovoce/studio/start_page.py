"""The first page: all surveys. And the way in."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from sottovoce.service.problems import Problem
from sottovoce.studio.access import cookie_name, is_local, safe_next
from sottovoce.studio.forms import Fields, one
from sottovoce.studio.page_context import Studio


def routes(studio: Studio) -> list[Route]:
    """The start page, log in, log out."""
    access = studio.access

    def start(request: Request) -> Response:
        studio.warm()
        return studio.render(request, "start.html", surveys=studio.service.surveys())

    def ask_token(request: Request) -> Response:
        code = request.query_params.get("code")
        is_visit = request.method == "GET" and is_local(request)
        secret = access.spend(code) if code is not None and is_visit else None
        if secret is not None:
            return _let_in(request, secret, "")
        wrong = (
            ""
            if code is None
            else "this link was used before, is too old, or is not for this address; "
            "start the studio anew"
        )
        return _asked(request, request.query_params.get("next", ""), wrong)

    def log_in(request: Request, fields: Fields) -> Response:
        token = one(fields, "token")
        try:
            access.holder(token)
        except Problem as refused:
            return _asked(request, one(fields, "next"), refused.detail)
        return _let_in(request, token, one(fields, "next"))

    def _asked(request: Request, next: str, wrong: str) -> Response:
        return studio.render(request, "login.html", 401 if wrong else 200, next=next, wrong=wrong)

    def _let_in(request: Request, secret: str, next: str) -> Response:
        base = request.scope["root_path"]
        answer = RedirectResponse(safe_next(next, base), 303)
        is_secure = request.url.scheme == "https"
        answer.set_cookie(
            cookie_name(request),
            secret,
            path=base,
            secure=is_secure,
            httponly=True,
            samesite="strict",
        )
        return answer

    def log_out(request: Request, _: Fields) -> Response:
        base, cookie = request.scope["root_path"], cookie_name(request)
        access.end(request.cookies.get(cookie, ""))
        answer = RedirectResponse(f"{base}/login", 303)
        answer.delete_cookie(cookie, path=base, httponly=True, samesite="strict")
        return answer

    return [
        Route("/", access.page(start)),
        Route("/login", access.public(ask_token), methods=["GET"]),
        Route("/login", access.public_action(log_in), methods=["POST"]),
        Route("/logout", access.public_action(log_out), methods=["POST"]),
    ]
