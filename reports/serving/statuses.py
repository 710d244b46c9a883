"""Kinds of errors, and the status of HTTP that each has."""

# Of what is refused before the request is looked at (kind "refused"): no token, a page of another site, another host's name.
REFUSED = (401, 403, 421)
# "closed": whoever asked has gone; nginx has this number for it, no client sees it.
STATUS = {
    "usage": 400,
    "not_found": 404,
    "body_time": 408,
    "too_large": 413,
    "media_type": 415,
    "failed": 422,
    "full": 429,
    "closed": 499,
    "fault": 500,
    "crashed": 500,
    "killed": 502,
    "closing": 503,
    "time": 504,
    "memory": 507,
}


def kind_of(status: int) -> str:
    """The kind of an error that a request meets before anybody looks at it."""
    return "refused" if status in REFUSED else next(kind for kind, of in STATUS.items() if of == status)
