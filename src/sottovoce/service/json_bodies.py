"""Bodies in JSON, read as strictly as their models say."""

from __future__ import annotations

from typing import TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

Model = TypeVar("Model", bound=BaseModel)


def read_model(model: type[Model], data: bytes) -> Model:
    """A request's body; what is wrong with it is told without what was sent."""
    try:
        return model.model_validate_json(data)
    except ValidationError as wrong:
        found = wrong.errors(include_url=False, include_context=False, include_input=False)
        raise RequestValidationError(
            [{**each, "loc": ("body", *each["loc"])} for each in found]
        ) from None
