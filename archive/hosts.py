"""Addresses to listen on, of IPv4 and IPv6."""

from __future__ import annotations

import socket


def family_of(host: str) -> socket.AddressFamily:
    """Return the address family of a host name or an address."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def in_url(host: str) -> str:
    """Return a host as a URL has it: an address of IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host
