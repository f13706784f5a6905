# Everything is installed into .venv, each package at one version and by its hash (locks/); Python >= 3.11 and make are needed.
# Parts of the system are installed by apt only when asked for: APT=1, as root. Otherwise what is missing is named.
PYTHON ?= python3
PYTHONS ?= /usr/bin/python3.11 python3.13
BIN := .venv/bin
JSON ?=
PEOPLE ?=
DATA ?=
TOR ?=
TEMPLATE ?=
APT ?=
TWICE ?=
CHANGED ?=
MINUTES ?=
VERSION ?=
DATE ?=
export APT
# Each module is compiled once, whatever the environment says: tests start hundreds of programs.
unexport PYTHONDONTWRITEBYTECODE

# $(call locked,ENVIRONMENT,LOCKS): what the lock files name, and only with their hashes.
locked = $(1)/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps $(foreach lock,$(2),-r locks/$(lock).txt)
# $(call project,ENVIRONMENT,MORE): the project itself, which brings nothing along.
project = $(1)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation $(2)
# $(call pytest,PYTHON): a run of tests; with TWICE=1, as CI has it, three files that failed are tried again alone.
pytest = $(1) -m $(if $(TWICE),tests.twice,pytest)
PEER := build peer
STAFF := $(PEER) aggregator
TEST := $(STAFF) postgres test
LEFT_OUT := soak or slow or process or tor or browser or postgres or timed or source

.PHONY: demo demo-sum demo-mooc demo-averaging demo-transfer demo-masks demo-groups demo-trees test repeat test-all windows timed mutants pythons test-pythons check bench paper soak clean tor parts wheel release verify-release pictures package windows-app deb mobile locks docs languages
.DEFAULT_GOAL := demo

.venv/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed; set PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv .venv || { echo "the venv module is missing; install python3-venv (Debian: apt-get install python3-venv)"; exit 1; }
	@touch $@

.venv/base: .venv/made pyproject.toml $(STAFF:%=locks/%.txt)
	@echo "installing into .venv, which takes about a minute"
	@$(call locked,.venv,$(STAFF))
	@$(call project,.venv,-e .)
	@touch $@

.venv/demo: .venv/base locks/demo.txt
	@$(call locked,.venv,demo)
	@touch $@

.venv/test: .venv/base locks/postgres.txt locks/test.txt
	@echo "installing the tests' parts into .venv, which takes about a minute"
	@$(call locked,.venv,postgres test)
	@touch $@

.venv/mobile: .venv/test constraints-mobile.txt locks/mobile.txt tests/mobile/resolved.json
	@rm -rf $@ && $(BIN)/python tests/mobile/resolve.py --site $@
	@touch $@

.venv/windows/made: .venv/test locks/windows.txt tests/windows/install.py tests/windows/bcryptprimitives.c
	@if tests/parts wine x86_64-w64-mingw32-gcc; then $(BIN)/python tests/windows/install.py .venv/windows && touch $@; fi

.venv/arm64/made: .venv/test constraints-mobile.txt locks/mobile.txt tests/mobile/resolved.json tests/mobile/resolve.py tests/arm64/install.py
	@if tests/parts qemu-aarch64; then $(BIN)/python tests/arm64/install.py .venv/arm64 && touch $@; fi

.venv/paper: .venv/test
	@touch $@

.venv/bench: .venv/test locks/bench.txt
	@$(call locked,.venv,bench) || echo "pure-ldp or multi-freq-ldpy could not be installed; the comparison is left out"
	@touch $@

tor:                    ## the system's tor; with ANONML_TOR set, that one is used and none is looked for
	@tests/parts tor || true

parts:                  ## all that some test looks for: namespaces, traces of system calls, a clock moved under tor, a browser
	@tests/parts || true

# $(call demo,EXAMPLE): with PEOPLE=N so many people, and with JSON=FILE the figures in a file.
demo = @$(BIN)/anonml demo $(1) $(if $(PEOPLE),--peers $(PEOPLE)) $(if $(JSON),--json $(JSON))

demo: .venv/demo $(if $(TOR),tor)   ## the census study: 2,000 real peers over loopback HTTP; TOR=1: 300 through real Tor
	$(call demo,census) $(if $(TOR),--tor) $(if $(DATA),--data $(DATA))

demo-sum: .venv/demo    ## the census study as exact sums of 300 people, with two tellers
	$(call demo,sum)

demo-mooc: .venv/demo   ## the course study: 500 students' tracking logs, and again with shuffled labels
	$(call demo,mooc)

demo-averaging demo-transfer demo-masks demo-groups demo-trees: demo-%: .venv/demo   ## parties with many records each: with two tellers, or none
	$(call demo,$*)

test: .venv/test        ## what anybody can run: no root, no tor, no browser
	@echo "two to three minutes on two quiet cores; all tests are collected before the first dot"
	@$(BIN)/python -m pytest -m "not ($(LEFT_OUT))" -n 2 --dist loadfile
	@echo "left out: whole programs and servers, long computations, Tor, the browser, PostgreSQL, what counts seconds, the rules of the source (make check), the soak; make test-all runs all but the soak"

RUNS ?= 20
BESIDE ?= 0
repeat: .venv/test .venv/demo   ## make test RUNS times, the first failure ends it; SHUFFLED=1: each time in another order; BESIDE=8: beside so many busy programs
	@$(BIN)/python -m tests.repeat $(RUNS) --beside $(BESIDE) -- $(if $(DEMO),$(BIN)/anonml demo $(DEMO),\
		env $(if $(SHUFFLED),ANONML_ORDER={run}) $(BIN)/python -m pytest -m "not ($(LEFT_OUT))" -n 2 --dist loadfile)

test-all: .venv/test .venv/mobile .venv/docs/made .venv/release/made parts   ## every test but the soak and those under Wine. CHECKED=1: without those that make check ran
	@$(call pytest,$(BIN)/python) -m "not (soak or timed$(if $(CHECKED), or (source and not (process or browser))))" --ignore=tests/windows -n 4 --dist loadfile --no-loadscope-reorder --durations 30 --durations-min 15
	@$(MAKE) --no-print-directory timed
	@echo "left out: a peer on Windows (make windows, which CI runs), the soak$$(tests/parts >/dev/null || echo ', and:'; tests/parts | head -2)"

windows: .venv/windows/made    ## a peer on Windows' own Python, under Wine: whole studies, its page, and a peer's own tests
	@$(call pytest,$(BIN)/python) -m "not soak" -n 2 --dist load tests/windows
	@echo "left out: the zip for Windows, a death at every crash point, a synchronised folder, a closed window, Tor (the soak)"

timed: .venv/test       ## attacks whose success is a matter of seconds, one after the other
	@$(call pytest,$(BIN)/python) -m "timed and not soak"

mutants: .venv/test     ## faults planted one at a time: the tests have to notice each. CHANGED=N: of files of the last N commits; MINUTES=N: none begins later
	@$(BIN)/python -m tests.mutants $(if $(CHANGED),--changed $(CHANGED)) $(if $(MINUTES),--minutes $(MINUTES))

# $(call environment,PYTHON): the environment of one of PYTHONS. Each is made from the same locks.
environment = .venv/$$(basename $$($(1) -c 'import sys; print(sys.executable)'))-$$($(1) -c 'import platform; print(platform.python_version())')

pythons:                ## the environments of those of PYTHONS that are here; of the others a line says why not
	@found=$$(tests/pythons $(PYTHONS)) && for python in $$found; do \
		place=$(call environment,$$python) && \
		{ test $$place/made -nt pyproject.toml && test -z "$$(find locks -name '*.txt' -newer $$place/made)"; } || \
		{ $$python -m venv --clear $$place && $(call locked,$$place,$(TEST)) --no-compile && $(call project,$$place,-e .) && touch $$place/made; } || exit 1; \
	done

# $(call minor,PYTHON): 3.11 and the like; nothing where there is no such Python.
minor = $$($(1) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)

test-pythons: pythons   ## homes, backups, a peer's session, the commands and the attacks: what old and new Pythons do differently
	@found=$$(tests/pythons $(PYTHONS)) && for python in $$found; do \
		place=$(call environment,$$python) && \
		if test "$(call minor,$$place/bin/python)" = "$(call minor,$(BIN)/python)"; then attacks="$(OF_THE_LIBRARY)"; else attacks=tests/attacks; fi && \
		echo "under $$($$place/bin/python -V): $$attacks" && \
		$(call pytest,$$place/bin/python) -m "not ($(LEFT_OUT))" -n 3 --dist loadfile $(UNDER_EACH) $$attacks || exit 1; \
	done

UNDER_EACH := tests/aggregator/test_home_and_stores.py tests/peer/test_peer_session.py tests/peer/test_peer_backup.py \
	tests/peer/cli tests/networks/test_one_folder.py tests/networks/test_several_roles.py \
	tests/docs/test_first_mistakes.py tests/peer/data/test_importing_files.py
# The attacks that rest on Python's own library. A Python whose minor version .venv has runs these alone: all the others ran
# under .venv with the same packages, SQLite and OpenSSL.
OF_THE_LIBRARY := $(addprefix tests/attacks/,test_old_pythons.py test_import_bombs.py test_evaluation_in_a_child.py \
	test_restored_homes.py test_private_files.py test_erased_data.py test_one_connection.py test_closed_connections.py)

check: .venv/test       ## lint, types, and the rules of source and documents
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(call pytest,$(BIN)/python) -m "source and not (soak or process or browser)"

mobile: .venv/mobile    ## a peer for phones: do its wheels resolve for Android and iOS; test-all runs its life
	@$(BIN)/python tests/mobile/resolve.py

soak: .venv/demo .venv/test .venv/mobile .venv/arm64/made tor   ## the lines that ask for many repetitions
	@$(BIN)/python -m pytest -m soak

bench: .venv/bench      ## speed; figures go to benchmarks/out/*.json
	@for each in tokens vdaf perturb aggregate central peer records server load tellers letters masks oblivious tor; do $(BIN)/python -m benchmarks.$$each || exit 1; done

paper: .venv/paper      ## the paper's figures from real data in the folder DATA; an hour on one core, kept in benchmarks/out
	@$(BIN)/python -m benchmarks.paper $(if $(DATA),--data $(DATA))

wheel: .venv/base       ## the wheel that peers and staff install, its sources, its list of parts and SHA256SUMS, in dist/
	@$(call locked,.venv,build)
	@$(BIN)/python -m bundle.wheel

.venv/release/made: locks/release.txt
	@$(PYTHON) -m venv .venv/release
	@$(call locked,.venv/release,release)
	@touch $@

release: .venv/base .venv/release/made    ## VERSION=0.1.0 DATE=2027-01-31: the files in dist/VERSION, notes and a tag here; nothing is pushed
	@$(call locked,.venv,build)
	@$(BIN)/python -m bundle.release $(VERSION) --date $(DATE)

verify-release: .venv/base    ## VERSION=0.1.0: its tag is built anew and compared with its digests, and with dist/VERSION
	@$(call locked,.venv,build)
	@$(BIN)/python -m bundle.release $(VERSION) --verify

languages: .venv/test   ## the catalogues of the owner's page, after one of its sentences changed
	@$(BIN)/python -m bundle.languages

pictures: .venv/demo .venv/test    ## the documents' pictures: a newcomer's walk in Chromium, and the report of the course study
	@$(BIN)/python -m pytest -m "not soak" tests/docs/test_newcomer_walk.py --deselect tests/docs/test_newcomer_walk.py::test_the_pictures_are_there_and_small
	@rm -rf build/course && mkdir -p build && $(BIN)/anonml demo mooc --no-control --keep build/course
	@$(BIN)/anonml aggregator report build/course/report.html --home build/course/aggregator
	@$(BIN)/python -m tests.docs.pictures build/course/report.html

.venv/bundle/made: $(PEER:%=locks/%.txt) locks/bundle.txt
	@$(PYTHON) -m venv .venv/bundle
	@$(call locked,.venv/bundle,$(PEER) bundle)
	@touch $@

package: .venv/bundle/made   ## the peer as one program that needs no Python on the machine: dist/anonml-peer
	@rm -rf build/lib build/bdist.*
	@$(call project,.venv/bundle,.)
	@.venv/bundle/bin/pyinstaller --onefile --noconfirm --log-level ERROR --name anonml-peer \
		--distpath dist --workpath build/bundle --specpath build/bundle \
		--collect-submodules anon --collect-data anon --collect-submodules peer --collect-data peer --copy-metadata anonml \
		--hidden-import _cffi_backend --hidden-import webbrowser --exclude-module aggregator bundle/peer_program.py
	@env -i HOME=$(CURDIR)/build/bundle dist/anonml-peer --version
	@env -i HOME=$(CURDIR)/build/bundle dist/anonml-peer doctor

fetch = $(BIN)/pip download --quiet --disable-pip-version-check --require-hashes --no-deps
windows-app: .venv/base    ## one folder and a zip for a Windows with nothing installed, in dist/ and build/windows
	@tests/parts x86_64-w64-mingw32-gcc
	@$(call locked,.venv,build)
	@rm -rf build/windows
	@$(fetch) --dest build/windows/wheels -r locks/peer.txt --only-binary :all: --platform win_amd64 --implementation cp --python-version 3.11
	@$(fetch) --dest build/windows/python -r locks/windows.txt --no-build-isolation
	@$(BIN)/python -m bundle.windows_app

.venv/briefcase/made: locks/briefcase.txt
	@/usr/bin/python3 -m venv .venv/briefcase
	@$(call locked,.venv/briefcase,briefcase)
	@touch $@

.venv/uv/made: locks/uv.txt
	@$(PYTHON) -m venv .venv/uv
	@$(call locked,.venv/uv,uv)
	@touch $@

.venv/docs/made: locks/docs.txt
	@$(PYTHON) -m venv .venv/docs
	@$(call locked,.venv/docs,docs)
	@touch $@

docs: .venv/docs/made   ## the documentation as a site, in build/site; a dead link fails
	@NO_MKDOCS_2_WARNING=1 .venv/docs/bin/mkdocs build --strict

locks: .venv/uv/made    ## the lock files anew, after constraints.txt or pyproject.toml changed
	@$(PYTHON) locks/make.py $(CURDIR)/.venv/uv/bin/uv

# Briefcase fetches its template from GitHub; TEMPLATE=FOLDER takes a copy of beeware/briefcase-linux-system-template.
deb: .venv/briefcase/made    ## the page as a Debian package by Briefcase (Debian, Ubuntu; needs build-essential, python3-dev)
	@rm -rf build/lib build/bdist.* build/anonml-app
	@.venv/briefcase/bin/briefcase create linux system --no-input $(if $(TEMPLATE),-C 'template="$(TEMPLATE)"')
	@.venv/briefcase/bin/briefcase build linux system --no-input
	@.venv/briefcase/bin/briefcase package linux system --no-input --adhoc-sign
	@rm -rf logs

clean:
	rm -rf .venv build dist *.egg-info
