"""Logs, a JSON object a line: what happened, how it ended; never a payload, id, token, address."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

from sottovoce.ground.errors import StoreError
from sottovoce.service.problems import Problem

logger = logging.getLogger("sottovoce.service")


class _Lines(logging.Formatter):
    def __init__(self, to_the_minute: bool = False) -> None:
        super().__init__()
        self._to_the_minute = to_the_minute

    def format(self, record: logging.LogRecord) -> str:
        moment = time.gmtime(record.created)
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", moment) + f".{int(record.msecs):03d}Z"
        fields: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%MZ", moment) if self._to_the_minute else seconds,
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            # where it happened, without the message: an exception's words may quote what was sent
            fields["error"] = record.exc_info[0].__name__
            trace = record.exc_info[2]
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            if trace is not None:
                fields["at"] = f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}"
        return json.dumps(fields)


def log_to_stderr(level: int = logging.INFO, to_the_minute: bool = False) -> None:
    """Send logs to standard error; the web server's own go the same way.

    Of a shuffler they tell no more of the time than its minute.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines(to_the_minute))
    for name in ("sottovoce.service", "uvicorn.error"):
        own = logging.getLogger(name)
        own.handlers, own.propagate = [handler], False
        own.setLevel(level)


def log(event: str, **fields: Any) -> None:
    """Something ordinary."""
    logger.info(event, extra={"fields": fields})


def log_problem(path: str, problem: Problem, wrong: BaseException | None = None) -> None:
    """A request that was refused; a mistake of ours with the place it happened."""
    fields = {"path": path, "status": problem.status, "problem": problem.name}
    if problem.name == "internal":
        logger.error("mistake", extra={"fields": fields}, exc_info=wrong)
    elif isinstance(wrong, StoreError):  # it speaks of the store, never of a report
        logger.error("store", extra={"fields": fields | {"detail": str(wrong)}})
    else:
        logger.info("refused", extra={"fields": fields})


def log_mistake(event: str, wrong: BaseException) -> None:
    """Something that should not happen, with the place where it did."""
    logger.error(event, exc_info=wrong)
