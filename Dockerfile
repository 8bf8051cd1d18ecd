# Simulations, sweeps and live runs in a container, by CPU. With Docker, or Podman likewise:
#
#     docker build -t dlion-sim .
#     docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" dlion-sim run quickstart
#
# Runs go into results/runs of the folder that is mounted; compiled kernels and data sets are kept in its .cache.
#
# PyTorch comes in the build that the package index offers. With --build-arg PIP_EXTRA_INDEX_URL=..., the address of an
# index that has PyTorch's builds for CPUs, the image is some gigabytes smaller.
#
# Emulation also needs what emulation/setup.sh installs, the extra `emulation`, root (--user root), and the right to make
# network namespaces (--privileged).
FROM python:3.12-slim

ARG PIP_EXTRA_INDEX_URL
WORKDIR /opt/dlion-sim
COPY LICENSE README.md constraints.txt pyproject.toml ./
COPY dlion_sim dlion_sim
COPY scenarios scenarios
RUN pip install --no-cache-dir -c constraints.txt .

RUN useradd --create-home --home-dir /work dlion
# Whoever it is run as: what is kept beside runs goes where runs go.
ENV HOME=/work
WORKDIR /work
USER dlion
ENTRYPOINT ["dlion"]
CMD ["--help"]
