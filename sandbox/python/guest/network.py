"""A child's network. Most have none. One whose sandbox has it switched on has a
namespace of its own with a loopback and one listener on it, which the service serves
from outside as an HTTP proxy: there is no other way out.

What is refused, the kernel refuses. That Python then says why, in words that an agent
can act on, is a courtesy: explain.
"""

import fcntl
import functools
import importlib.util
import os
import socket
import struct
import sys

import lockdown

OFF = "the network is off for this sandbox: create one with enable_network_access, and the hosts it is for in allowed_hosts"
ON = "this sandbox reaches hosts through its HTTP proxy only: leave the client's proxy settings (trust_env) as they are"

_CLONE_NEWNET, _SIOCSIFFLAGS, _IFF_UP = 0x40000000, 0x8914, 1
_BACKLOG = 64

_says = OFF


def switch_on(host: str, port: int, environment: "dict[str, str]") -> int:
    """Moves to an empty network of its own; returns the descriptor of a listener
    there. Before lockdown, which forbids all of this."""
    global _says
    lockdown.unshare(_CLONE_NEWNET)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        fcntl.ioctl(listener, _SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", _IFF_UP))
        listener.bind((host, port))
        listener.listen(_BACKLOG)
        fd = listener.detach()
    os.environ.update(environment)
    sys.meta_path.insert(0, _Trusting())
    _says = ON
    return fd


class _Trusting:
    """Has aiohttp's sessions look for the proxy where all others do: it imports
    aiohttp.client as it is, and then makes trust_env the default there."""

    def find_spec(self, name: str, *_):
        if name != "aiohttp.client":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def exec_module(module) -> None:
            load(module)
            defaults = module.ClientSession.__init__.__kwdefaults__
            if "trust_env" in defaults:
                defaults["trust_env"] = True

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def explain() -> None:
    """Has the socket module say why the kernel refuses. Made once, in the zygote."""
    socket.getaddrinfo = _explained(socket.getaddrinfo)
    socket.gethostbyname = _explained(socket.gethostbyname)
    socket.socket.__init__ = _explained(socket.socket.__init__)  # type: ignore[method-assign]
    socket.socket.connect = _explained(socket.socket.connect)  # type: ignore[method-assign]


def _explained(call):
    @functools.wraps(call)
    def explained(*args, **named):
        try:
            return call(*args, **named)
        except (PermissionError, socket.gaierror) as error:
            raise type(error)(error.errno, _says) from None

    return explained
