# Every target sets up what it needs on a fresh machine: Python 3.11+ with venv, and the package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
RUNTIME := $(VENV)/.runtime
SETUP := setup
PYTEST_FLAGS :=
# What "make test" leaves to CI: SELECTION= runs every test.
SELECTION := not long
# Two for each processor: tests wait for processes and clocks too. Each more collects them all once more.
WORKERS := $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))

.PHONY: setup demo test lint helm sbom release bench docs stress cluster clean ui upstream reference

setup: $(STAMP)

$(RUNTIME): pyproject.toml aggregator/specmux_aggregator/version.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(STAMP): pyproject.toml aggregator/specmux_aggregator/version.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $@ $(RUNTIME)

# The runtime alone: whoever tries it needs no tools of development.
demo: $(RUNTIME)
	$(BIN)/specmux demo

# Some machines set PYTHONDONTWRITEBYTECODE; then each worker and each started process compiles all modules anew.
test: $(SETUP)
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "$(SELECTION)" $(PYTEST_FLAGS)

# Files of others that tests read, by name, version and hash from the Go module proxy to ~/.cache.
reference: setup
	$(BIN)/python tests/reference_data.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --strict examples/programs
	$(BIN)/python -m pip install --quiet --group pyright
	$(BIN)/basedpyright --pythonpath $(BIN)/python --level error examples/programs
	$(BIN)/lint-imports

# Helm itself comes from the package index too. Alerts are tested where promtool is (Debian: prometheus).
helm: setup
	$(BIN)/python -m pip install --quiet --group helm
	$(BIN)/python -m pytest -n auto tests/helm tests/repository/test_chart_metrics.py \
		tests/integration/test_in_cluster.py tests/integration/test_in_cluster_kubectl.py $(PYTEST_FLAGS)

# The web UI in a browser, Debian's chromium: apt-get install chromium.
ui: setup
	$(BIN)/python -m pip install --quiet --group ui
	$(BIN)/python -m pytest tests/ui $(PYTEST_FLAGS)

# What the image installs, by name, version and licence. The environment has the wheel and nothing of this one.
sbom: setup
	$(BIN)/python -m pip install --quiet --group sbom
	rm -rf build/sbom
	$(BIN)/python -m build --wheel --outdir build/sbom . >/dev/null
	$(BIN)/python -m venv --without-pip build/sbom/environment
	$(BIN)/python -m pip --quiet --python build/sbom/environment install build/sbom/specmux-*.whl
	mkdir -p dist
	version=$$($(BIN)/python -c "from specmux_aggregator.version import VERSION; print(VERSION)") && \
		sed "s/^dynamic = .*/version = \"$$version\"/" pyproject.toml >build/sbom/pyproject.toml
	$(BIN)/cyclonedx-py environment --pyproject build/sbom/pyproject.toml --gather-license-texts \
		--output-reproducible --output-format JSON \
		--output-file dist/specmux.cdx.json build/sbom/environment/bin/python
	$(BIN)/python tests/repository/bom_contents.py dist/specmux.cdx.json build/sbom/environment/lib/python3.*/site-packages

# Into dist: the wheel, the chart, what the image is built from (docker build - <dist/specmux-*-image.tar.gz), and the
# bill of materials. Ends with an error unless all have one version.
release: sbom
	$(BIN)/python -m pip install --quiet --group helm
	$(BIN)/python release.py build

bench: setup
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python tests/benchmarks/run_all.py

# A real etcd, kube-apiserver and extension apiserver, built once from Go modules (minutes) into a cache folder.
# SPECMUX_CLUSTER_VERSION=v1.36.3 takes another release.
cluster: setup
	SPECMUX_CLUSTER=1 $(BIN)/python -m pytest -n 0 tests/cluster $(PYTEST_FLAGS)

# What newer k8s.io modules change in the files that our behaviour comes from: build/upstream. RECORD=v0.38.0 records
# the answers of that version anew; it needs go.
upstream: setup
	$(BIN)/python tests/upstream.py $(RECORD)

# The site, in build/site; a link that leads nowhere ends it.
docs: setup
	$(BIN)/python -m pip install --quiet --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# A quarter of an hour on two cores; STRESS_FORM=long STRESS_FOLLOWING=600 takes three times that.
STRESS_FORM ?= middle
STRESS_FOLLOWING ?= 180
STRESS_STREAMS ?= 40000
STRESS_BODIES ?= 100000
STRESS_MODEL ?= 120
STRESS_PAYLOADS ?= 100000

stress: setup
	$(BIN)/python tests/stress/stress_exchanges.py
	$(BIN)/python tests/stress/stress_tiers.py --streams $(STRESS_STREAMS)
	$(BIN)/python tests/stress/stress_service.py --form $(STRESS_FORM) --write docs/benchmarks/stress.md
	$(BIN)/python tests/stress/stress_handshakes.py --bodies $(STRESS_BODIES) --write docs/benchmarks/stress.md
	$(BIN)/python tests/stress/stress_replicas.py --write docs/benchmarks/stress.md
	$(BIN)/python tests/stress/stress_followers.py --seconds $(STRESS_FOLLOWING) --write docs/benchmarks/stress.md
	$(BIN)/python tests/stress/stress_reader.py --write docs/benchmarks/stress.md
	$(BIN)/python tests/stress/stress_resumption.py
	$(BIN)/python tests/stress/stress_diff.py
	$(BIN)/python tests/stress/stress_scopes.py
	$(BIN)/python tests/stress/stress_model.py --seconds $(STRESS_MODEL)
	$(BIN)/python tests/stress/stress_chains.py --payloads $(STRESS_PAYLOADS)

clean:
	rm -rf $(VENV) .venv-* dist build bench-out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
