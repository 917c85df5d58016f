"""The first page: all surveys. And the way in, where a token is needed."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from sottovoce.studio.access import COOKIE, safe_next
from sottovoce.studio.forms import Fields, one
from sottovoce.studio.frame import Studio


def routes(studio: Studio) -> list[Route]:
    """The start page, log in, log out."""
    access = studio.access

    def start(request: Request) -> Response:
        studio.warm()
        return studio.render(request, "start.html", surveys=studio.desk.surveys())

    def ask_token(request: Request) -> Response:
        return studio.render(request, "login.html", next=request.query_params.get("next", ""), wrong=False)

    def log_in(request: Request, fields: Fields) -> Response:
        base, token = request.scope["root_path"], one(fields, "token")
        if not access.knows(token):
            return studio.render(request, "login.html", 401, next=one(fields, "next"), wrong=True)
        answer = RedirectResponse(safe_next(one(fields, "next"), base), 303)
        is_secure = request.url.scheme == "https"
        answer.set_cookie(COOKIE, token, path=base, secure=is_secure, httponly=True, samesite="strict")
        return answer

    def log_out(request: Request, _: Fields) -> Response:
        base = request.scope["root_path"]
        answer = RedirectResponse(f"{base}/login", 303)
        answer.delete_cookie(COOKIE, path=base, httponly=True, samesite="strict")
        return answer

    return [
        Route("/", access.page(start)),
        Route("/login", access.public(ask_token), methods=["GET"]),
        Route("/login", access.public_action(log_in), methods=["POST"]),
        Route("/logout", access.public_action(log_out), methods=["POST"]),
    ]
