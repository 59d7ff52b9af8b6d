# The project's commands. Each sets itself up: a virtual environment in .venv (python3 -m venv), and in it what
# pyproject.toml asks for. The stamps in .venv keep anything from being installed twice; another interpreter or a moved
# checkout makes .venv anew.

PYTHON ?= python3
ARGS =
PROSE = README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md
TIME = 60
VM = bookworm

# A python3 that is too old is passed over for a newer one beside it; one that was asked for by name is not.
ifeq ($(origin PYTHON),file)
PYTHONS = $(PYTHON) python3.14 python3.13 python3.12 python3.11
else
PYTHONS = $(PYTHON)
endif

BIN = .venv/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check --quiet
MADE := .venv/made-$(shell printf '%s %s' '$(PYTHON)' "$$(pwd -P)" | cksum | cut -d ' ' -f 1)
RUNTIME = .venv/runtime-installed
DEV = .venv/dev-installed
FUZZ = .venv/fuzz-installed
DOCS = .venv/docs-installed

.SILENT:
.PHONY: help demo test test-host test-vm fuzz lint docs dist bench format schema pictures shell report zipapp clean
.DEFAULT_GOAL = help
unexport PYTHONHOME PYTHONPATH

help: ## show this list
	sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 18
	echo
	echo '  ARGS="..." goes on to pytest, or to the benchmarks:   make test ARGS="-k pmap -x"'
	echo '  TIME=... is how many seconds to fuzz:                  make fuzz TIME=600 ARGS="elf dwarf"'
	echo '  VM=... is which systems to boot:                       make test-vm VM="bookworm trixie arm64 linux-5.10"'
	echo '  PYTHON=... is the interpreter to use, 3.11 or newer:   make test PYTHON=python3.13'

demo: $(RUNTIME) ## start a sample program and show where its memory goes, and what 10,000 of them cost
	PYTHON=$(BIN)/python sh sample_binaries/demo.sh $(BIN)/footprint

# In as many processes at once as there are processors; ARGS="-n 0" runs a test in this one, as a debugger needs it.
test: $(DEV) ## run the tests that pass on any machine
	$(BIN)/pytest -n auto --dist worksteal $(ARGS)

# The tests of one file stay together, since some of them share what they build. Half of their time they wait, but with
# more at once than processors some miss the moment that they wait for.
test-host: $(DEV) ## run the tests that compare with the programs, tools, kernel and browser of this machine
	$(BIN)/pytest -n auto --dist loadfile $(if $(filter tests/%,$(ARGS)),,tests/host) $(ARGS)

# Takes root, and what tests/vm/machine.sh names. The images stay in build/vm. ARGS="-k swap" goes on to pytest there.
test-vm: $(DEV) ## boot other systems in an emulator, and run the tests of tests/vm there
	$(BIN)/python tests/vm/systems.py $(VM) $(if $(ARGS),--pytest="$(ARGS)")

# What it finds is in fuzz/findings. ARGS="elf dwarf" names targets.
fuzz: $(FUZZ) ## damage the inputs of every reader for TIME=60 seconds in all
	$(BIN)/python -m fuzz --seconds $(TIME) $(ARGS)

lint: $(DEV) ## check format, style, types, who imports whom, and the words of the documentation
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python shell/check_circles.py
	$(BIN)/python shell/plain_names.py
	$(BIN)/codespell $(PROSE) footprint shell benchmarks sample_binaries docs
	$(BIN)/proselint check --config .proselintrc.json $(PROSE) docs/*.md docs/how-to docs/findings docs/examples/*/*.md

# A warning is an error, as for a link that leads nowhere. Nothing is fetched. Folders of other versions are kept.
docs: $(DOCS) ## build the site in build/site
	site=build/site/$$($(BIN)/python -c 'import footprint; print(footprint.__version__)') && \
	$(BIN)/python -m sphinx -W --keep-going -q -j auto -d build/doctrees docs "$$site" && \
	$(BIN)/python shell/site_versions.py build/site && \
	$(BIN)/python shell/check_site.py "$$site"
	echo "build/site/index.html"

bench: $(DEV) ## time footprint and its peers on the same inputs
	$(BIN)/python benchmarks/run.py $(ARGS)

format: $(DEV) ## format the code, and mend what can be mended without judgement
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

report: ## build the script and style of the HTML report from footprint/html/app (needs npm)
	npm ci --prefix footprint/html/app --ignore-scripts --no-audit --no-fund
	npm run --prefix footprint/html/app check
	npm run --prefix footprint/html/app build

schema: $(DEV) ## write the JSON schema, the tables of docs/json.md and the types of the report anew
	$(BIN)/python shell/describe.py

pictures: $(DEV) ## draw the pictures of the HTML report in docs/images anew (needs Chromium and node)
	$(BIN)/python shell/pictures.py

shell: $(DEV) ## write the completions of the shells and the man page anew
	$(BIN)/python shell/generate.py

# pycxxfilt is compiled, and cannot be loaded from an archive.
zipapp: $(RUNTIME) ## pack footprint and what it needs into dist/footprint.pyz, which any Python 3.11 or newer runs
	rm -rf build/zipapp && mkdir -p dist
	$(PIP) install --no-compile --target build/zipapp .
	rm -rf build/zipapp/pycxxfilt* build/zipapp/bin build/zipapp/share
	echo 'from footprint.__main__ import run_process; run_process()' >build/zipapp/__main__.py
	$(BIN)/python -m zipapp build/zipapp -c -o dist/footprint.pyz -p '/usr/bin/env python3'
	rm -rf build/zipapp
	ls -sh dist/footprint.pyz

# Both builds begin with the same files, at other places and times, so the packages must be the same to the byte.
dist: $(DEV) ## build the wheel and the source archive in dist, twice, and compare them
	rm -rf build/again dist/*.whl dist/*.tar.gz && mkdir -p build/again/source
	$(BIN)/python -m build --no-isolation --outdir dist . >build/again/log 2>&1 || { cat build/again/log; exit 1; }
	tar -xzf dist/*.tar.gz --strip-components 1 -C build/again/source
	$(BIN)/python -m build --no-isolation --outdir build/again/dist build/again/source >build/again/log 2>&1 || { cat build/again/log; exit 1; }
	for package in dist/*.whl dist/*.tar.gz; do cmp "$$package" "build/again/$$package" || exit 1; done
	rm -rf build/again
	ls -sh dist/*.whl dist/*.tar.gz

clean: ## remove .venv, caches and built packages
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .grimp_cache
	rm -rf build dist sample_binaries/build footprint/html/app/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE):
	for python in $(PYTHONS); do \
		if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "making .venv with $$("$$python" -V)"; \
			"$$python" -m venv --clear .venv && touch $@; \
			exit; \
		fi; \
	done; \
	echo "footprint needs Python 3.11 or newer, with its venv module; none of these will do: $(PYTHONS)." >&2; \
	echo "Debian, Ubuntu: apt-get install python3 python3-venv. Or name another: make PYTHON=/path/to/python3" >&2; \
	exit 1

$(RUNTIME): pyproject.toml $(MADE)
	echo "installing footprint into .venv"
	$(PIP) install --editable .
	touch $@

# pip knows dependency groups since 25.1.
$(DEV): $(RUNTIME)
	echo "installing the development tools into .venv"
	$(PIP) install 'pip>=25.1'
	$(PIP) install --group dev
	touch $@

$(DOCS): $(RUNTIME)
	echo "installing Sphinx into .venv"
	$(PIP) install 'pip>=25.1'
	$(PIP) install --group docs
	touch $@

$(FUZZ): $(DEV)
	echo "installing the fuzzer into .venv"
	$(PIP) install --group fuzz
	touch $@
