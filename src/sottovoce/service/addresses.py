"""Who asks: which proxies are believed about their clients, and which addresses count as one."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from sottovoce.ground.errors import InvalidInput

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# bits of an IPv6 address that tell one connection from another; a household may choose all others
HOUSEHOLD = 64
# of a host, and its port
_NAME = re.compile(r"([A-Za-z0-9._-]*|\[([0-9A-Fa-f:.]+)\])(:[0-9]{0,5})?")
_WITH_PORT = re.compile(r"\[([^\]]*)\](?::[0-9]+)?|([0-9.]+):[0-9]+")  # [IPv6]:port or IPv4:port


def parsed(text: str) -> Address | None:
    """An address as a socket or a proxy writes it, perhaps with a port; None if it is none."""
    with_port = _WITH_PORT.fullmatch(text)
    try:
        found = ipaddress.ip_address((with_port[1] or with_port[2] or "") if with_port else text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Addresses and networks such as 10.0.0.0/8, with commas or spaces between, or one by one."""
    found = []
    for text in (part for each in texts for part in re.split(r"[,\s]+", each) if part):
        try:
            found.append(ipaddress.ip_network(text))
        except ValueError:
            raise InvalidInput(
                f"proxy ({text}) must be an address, or a network such as 10.0.0.0/8"
            ) from None
    return tuple(found)


def client_of(peer: str, forwarded: Iterable[str], proxies: Iterable[Network]) -> str:
    """The address that a request came from, through proxies that are believed.

    Each proxy adds to ``X-Forwarded-For`` whom it heard. Read from the right, the first that is no
    believed proxy is the client; whatever stands to the left of it is that client's own claim. What
    a believed proxy wrote and is no address leaves the proxy itself.
    """
    believed = tuple(proxies)
    client = peer
    for text in reversed([part.strip() for line in forwarded for part in line.split(",")]):
        if not is_believed(client, believed) or parsed(text) is None:
            break
        client = str(parsed(text))
    return client


def is_believed(address: str, proxies: Iterable[Network]) -> bool:
    """Whether an address is one of the proxies'."""
    found = parsed(address)
    return found is not None and any(found in network for network in proxies)


def household(address: str) -> str:
    """What a limit counts as one: an IPv4 address, or the first 64 bits of an IPv6 address."""
    found = parsed(address)
    if not isinstance(found, ipaddress.IPv6Address):
        return address if found is None else str(found)
    return str(
        ipaddress.ip_network((int(found) >> (128 - HOUSEHOLD) << (128 - HOUSEHOLD), HOUSEHOLD))
    )


def is_origin(text: str) -> bool:
    """Whether a text is an origin as browsers write it: scheme, host, and port if unusual.

    >>> is_origin("https://survey.example.org")
    True
    >>> is_origin("https://survey.example.org/"), is_origin("survey.org")
    (False, False)
    """
    scheme, _, host = text.partition("://")
    usual = {"http": ":80", "https": ":443"}
    return (
        scheme in usual
        and bool(host)
        and host == host.lower()
        and is_host(host)
        and not host.endswith(usual[scheme])
    )


def is_host(text: str) -> bool:
    """Whether a Host header is a name or an address, with a port or without."""
    found = _NAME.fullmatch(text)
    if found is None or int((found[3] or ":")[1:] or 0) > 65535:
        return False
    return found[2] is None or isinstance(
        parsed(found[2]), ipaddress.IPv6Address | ipaddress.IPv4Address
    )
