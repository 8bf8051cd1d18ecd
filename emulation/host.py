"""Hosts on this machine that share nothing but programs, as machines of their own.

Each has its own network, host name, processes, clock since boot and file system, in which only programs are this
machine's, read-only. A switch connects them. The time of day is the same for all: Linux has one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import dlion_sim
from dlion_sim.errors import InputError

_HOME = "/root"
_SUBNET = "10.90.0"
_PACKAGE = Path(dlion_sim.__file__).parent
_PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", sys.base_prefix, sys.prefix)
_CLOCKS_APART = 100_000
"""Seconds between the clocks since boot of one host and the next; nodes measure time by these clocks."""

# The host's first process: $0 is its name, the arguments are what it sees of this machine. It ends with its standard
# input, and thus with the process that started it, and then the kernel removes the whole host.
_BOOT = f"""set -e
mount -t tmpfs tmpfs /sys  # Any folder will do: only this host sees it.
cd /sys
for each; do
  if [ -L "$each" ]; then
    cp -d "$each" ".$each"
  else
    mkdir -p ".$each"
    mount --bind "$each" ".$each"
    mount -o remount,bind,ro ".$each"
  fi
done
if [ ! -e .{_PACKAGE} ]; then  # A copy, with compiled kernels beside it, which a host writes, too.
  mkdir -p .{_PACKAGE.parent}
  cp -a {_PACKAGE} .{_PACKAGE}
fi
mkdir -p dev/shm proc tmp .{_HOME}
for each in null zero urandom; do
  touch dev/$each
  mount --bind /dev/$each dev/$each
done
touch hosts
mount --bind hosts etc/hosts
mount -t proc proc proc
echo "$0" > proc/sys/kernel/hostname
ip link set lo up
exec chroot . sh -c 'cd {_HOME}; echo booted; exec cat'
"""


@dataclass(frozen=True)
class Host:
    """A running host."""

    name: str
    address: str
    process: int
    """Its first one."""

    @property
    def root(self) -> Path:
        """Its file system, as a path on this machine: files are copied there and from there, as by scp."""
        return Path(f"/proc/{self.process}/root")

    @property
    def home(self) -> Path:
        """Where its commands run."""
        return Path(f"{self.root}{_HOME}")

    def start(self, *command: str, **variables: str) -> subprocess.Popen[str]:
        """Start a command in its home, with these environment variables too; its output and errors can be read."""
        path = f"{sys.prefix}/bin:{os.environ['PATH']}"
        own = {"HOME": _HOME, "HOSTNAME": self.name, "PATH": path, "PYTHONPATH": str(_PACKAGE.parent)}
        return subprocess.Popen(
            ["nsenter", f"--target={self.process}", "--all", "--root", "--wd", *command],
            env=own | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def resolve(self, addresses: Mapping[str, str]) -> None:
        """Have it find these addresses, by names, and no others."""
        lines = (f"{address} {name}\n" for name, address in {"localhost": "127.0.0.1", **addresses}.items())
        (self.root / "etc" / "hosts").write_text("".join(lines))


@contextmanager
def hosts(names: Sequence[str]) -> Iterator[list[Host]]:
    """Hosts with these names, which know each other's addresses by them. Raises InputError where there can be none."""
    if os.geteuid() != 0:
        raise InputError('hosts need root: the same command after sudo env "PATH=$PATH"')
    with ExitStack() as stack:
        switch = stack.enter_context(_booted("switch", clock=0))
        _ip(switch, "link add bridge up type bridge")
        made = []
        for number, name in enumerate(names, 1):
            process = stack.enter_context(_booted(name, clock=number * _CLOCKS_APART))
            made.append(Host(name, f"{_SUBNET}.{number}", process))
            _ip(switch, f"link add port{number} up master bridge type veth peer name eth0 netns {process}")
            _ip(process, f"address add {made[-1].address}/24 dev eth0")
            _ip(process, "link set eth0 up")
        for host in made:
            host.resolve({each.name: each.address for each in made})
        yield made


@contextmanager
def _booted(name: str, *, clock: int) -> Iterator[int]:
    """The first process of a host whose clocks since boot are so many seconds ahead."""
    spaces = ["--mount", "--uts", "--ipc", "--net", "--pid", "--time", f"--monotonic={clock}", f"--boottime={clock}"]
    shown = (each for each in _PROGRAMS if os.path.exists(each))
    with subprocess.Popen(
        ["unshare", *spaces, "--fork", "--kill-child", "sh", "-c", _BOOT, name, *shown],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as outer:
        assert outer.stdout is not None
        assert outer.stderr is not None
        if not outer.stdout.readline():
            raise InputError(
                f"cannot make a host: {outer.stderr.readline().strip()}", allowed="root, not in a container"
            )
        (first,) = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()
        yield int(first)


def _ip(process: int, command: str) -> None:
    """Change the network of a host."""
    subprocess.run(["nsenter", f"--target={process}", "--net", "ip", *command.split()], check=True)
