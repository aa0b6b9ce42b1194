# nginx to build and test against: vendored (the one of the crate nginx-src) or debian (the
# installed package). NGINX_BUILD_DIR or NGINX_SOURCE_DIR name another one, configured already;
# its binary is NGINX_BUILD_DIR/nginx unless NGINX_BINARY says otherwise.
NGINX ?= vendored
ifneq ($(NGINX_BUILD_DIR)$(NGINX_SOURCE_DIR),)
override NGINX := own
endif
# nginx takes an environment variable of this name for sockets that it inherits.
unexport NGINX

NAME := ngx_http_combined_upstreams_module

# One target directory for each nginx, so that going from one to the other rebuilds nothing.
export CARGO_TARGET_DIR := $(CURDIR)/target/$(NGINX)
MODULE := $(CARGO_TARGET_DIR)/release/$(NAME).so

# The client knows no nginx, so one build serves all. Where it is installed.
CTL := $(CURDIR)/target/ctl/release/upstrandctl
PREFIX ?= /usr/local

# Packages for `make test-unit`. Files for `make test-t`, how many at a time, and more options for prove.
UNIT ?= --workspace
T ?= $(wildcard t/stand-in/*.t t/*.t)
JOBS ?= 3
PROVE_FLAGS ?=

# Begins a recipe line that needs nginx: makes it if it is not there, sets NGINX_SOURCE_DIR,
# NGINX_BUILD_DIR, NGINX_BINARY and NGINX_MODULES_PATH.
with_nginx = set -e; env=$$(tools/nginx.sh $(NGINX)); set -a; eval "$$env"; set +a;

.PHONY: build ctl paths demo test check check-fmt check-clippy test-reference test-unit test-faults test-t \
    test-install test-build test-examples test-page test-monitoring rpm deb test-packages test-rpm test-deb test-container \
    test-crossplane test-matrix bench soak check-asan install install-ctl man deps test-deps clean help
.NOTPARALLEL:

build: ## build nginx (NGINX=vendored|debian) and the module, in release
	@tools/deps.sh --check $(NGINX)
	@$(with_nginx) cargo build --release --locked
	@ln -f $(CARGO_TARGET_DIR)/release/lib$(NAME).so $(MODULE)

ctl: ## build upstrandctl, in release; needs no nginx
	@cargo build --release --locked -p upstrandctl --target-dir target/ctl

paths: ## print what was built: two lines, nginx=PATH and module=PATH
	@$(MAKE) --no-print-directory NGINX=$(NGINX) build >&2
	@$(with_nginx) printf 'nginx=%s\nmodule=%s\n' "$$NGINX_BINARY" "$(MODULE)"

demo: deps build ## a live fail-over on loopback, checked
	@$(with_nginx) tools/demo.sh "$$NGINX_BINARY" $(MODULE)

test: test-deps check test-reference test-unit test-faults test-t test-install test-build test-examples test-page test-monitoring ## every test there is

check: check-fmt check-clippy check-deny ## rustfmt, clippy and cargo-deny

# Rust's minimal profile lacks these two.
if_installed = cargo $(1) --version >/dev/null 2>&1 || \
    { echo "ok - cargo $(1) \# skip not installed: rustup component add $(2)"; exit 0; };

check-fmt:
	@$(call if_installed,fmt,rustfmt) cargo fmt --all --check && echo "ok - cargo fmt"

check-clippy:
	@$(call if_installed,clippy,clippy) $(with_nginx) \
	cargo clippy --workspace --all-targets --locked -- -D warnings; echo "ok - cargo clippy"

.PHONY: check-deny
check-deny: ## licences, duplicates and sources of all crates (deny.toml); skipped without cargo-deny
	@cargo deny --version >/dev/null 2>&1 || \
	    { echo "ok - cargo deny # skip not installed: cargo install --locked cargo-deny"; exit 0; }; \
	cargo deny --locked check licenses bans sources && echo "ok - cargo deny"

test-reference: ## README and contrib/ against the tables of the code
	@tools/check-reference.sh

test-unit: build ## cargo test: the pure logic, and tests/*.rs, which start nginx
	@$(with_nginx) TEST_NGINX_BINARY=$$NGINX_BINARY TEST_NGINX_LOAD_MODULES=$(MODULE) \
	    cargo test $(UNIT) --locked --no-fail-fast

# A build of its own, with faults on purpose (src/nginx/fault.rs).
FAULTS := $(CURDIR)/target/$(NGINX)-faults
test-faults: build ## panics and failed allocations stay within their request or configuration
	@$(with_nginx) export CARGO_TARGET_DIR=$(FAULTS); \
	cargo build --locked --features faults; \
	TEST_NGINX_BINARY=$$NGINX_BINARY \
	    TEST_NGINX_LOAD_MODULES=$(FAULTS)/debug/lib$(NAME).so \
	    cargo test --locked --features faults --test faults -- --nocapture

# Test::Nginx::Socket itself where it is installed, else the stand-in for it.
test-t: build ## t/*.t by prove; T=FILES, PROVE_FLAGS=
	@$(with_nginx) \
	perl -MTest::Nginx::Socket -e1 2>/dev/null || lib=-It/lib; \
	TEST_NGINX_BINARY=$$NGINX_BINARY TEST_NGINX_LOAD_MODULES=$(MODULE) TEST_NGINX_RANDOMIZE=1 \
	    prove $$lib -j $(JOBS) $(PROVE_FLAGS) $(T)

test-install: build ctl ## `make paths`, `make install` and `make install-ctl`
	@tools/test-install.sh $(MAKE) NGINX=$(NGINX)

test-build: ## the builds by nginx's own configure; some of t/ on the static one
	@$(with_nginx) tools/test-build.sh $(CARGO_TARGET_DIR)/test-build

.PHONY: test-build-full
test-build-full: build ## the same, and all of t/ and tests/ on both of them
	@$(with_nginx) tools/test-build.sh --full $(CARGO_TARGET_DIR)/test-build

test-examples: build ctl ## each configuration in examples/, and the demo
	@$(with_nginx) UPSTRANDCTL=$(CTL) tools/test-examples.sh "$$NGINX_BINARY" $(MODULE)

test-page: ## the page of upstrand_status in headless Chromium; SHOTS=DIRECTORY keeps screenshots
	@tools/test-page.sh

test-monitoring: ## the Grafana dashboard, the alerts, and the checks of metrics and status
	@tools/test-monitoring.sh

rpm: ## RPM packages in target/rpm, for the nginx of nginx-mod-devel, else Debian's
	@tools/deps.sh rpm
	@tools/rpm.sh

deb: ## Debian packages in target/deb, for Debian's nginx
	@tools/deps.sh deb
	@tools/deb.sh

test-packages: test-rpm test-deb test-container test-crossplane ## packages, built and tried

test-rpm: rpm ## rpmlint; the RPM installed into a scratch root, a fail-over, removed
	@tools/test-rpm.sh

test-deb: deb ## lintian; the Debian package installed into a scratch root, a fail-over, purged
	@tools/test-deb.sh

test-container: ## the steps of examples/container without a container
	@env=$$(tools/nginx.sh vendored); eval "$$env"; \
	examples/container/check.sh "$$NGINX_BINARY" "$$NGINX_SOURCE_DIR"

test-crossplane: ## contrib/crossplane against contrib/directives.json, and crossplane if installed
	@command -v python3 >/dev/null || { echo "ok - crossplane # skip no python3"; exit 0; }; \
	contrib/crossplane/generate.py --check

bench: build ## instructions and system calls against plain nginx; BENCH=--check fails if they got worse
	@$(with_nginx) tools/bench.sh "$$NGINX_SOURCE_DIR" $(MODULE) $(BENCH)

soak: build ## everything fails at random under reloads and kills for SOAK_SECONDS (120)
	@$(with_nginx) TEST_NGINX_BINARY=$$NGINX_BINARY TEST_NGINX_LOAD_MODULES=$(MODULE) \
	    cargo test --locked --test soak -- --ignored --nocapture

# In the directory that cargo takes for the module, so that nothing is built twice.
.PHONY: fuzz
fuzz: ## walks and status words at random against models of them, for FUZZ_SECONDS (60)
	@FUZZ_SECONDS=$(or $(FUZZ_SECONDS),60) \
	    cargo test --locked -p walk --test fuzz random -- --nocapture

test-matrix: ## t/ and tests/ on the nginx of Debian 12, 13, testing, and the vendored one; MATRIX=NGINX...
	@tools/matrix.sh $(MATRIX)

check-asan: ## t/*.t and hostile configurations under AddressSanitizer; T=FILES for these only
	@tools/asan.sh $(if $(filter file,$(origin T)),,$(T))

.PHONY: check-asan-short
check-asan-short: ## the same with the tests that reach most in the least time
	@tools/asan.sh short

install: $(if $(wildcard $(MODULE)),,build) ## put the module where that nginx looks for modules (DESTDIR=)
	@$(with_nginx) install -D -m 644 $(MODULE) \
	    "$(DESTDIR)$$NGINX_MODULES_PATH/$(NAME).so"

install-ctl: $(if $(wildcard $(CTL)),,ctl) ## put upstrandctl, its man page and completions under PREFIX (/usr/local; DESTDIR=)
	@tools/install-ctl.sh $(CTL) "$(DESTDIR)$(PREFIX)"

man: ## write upstrandctl/upstrandctl.1 anew, from the options
	@UPSTRANDCTL_WRITE_MAN=1 cargo test --quiet --locked -p upstrandctl man::

deps: ## install what the build and the demo miss, by apt
	@tools/deps.sh $(NGINX)

test-deps: ## install what the tests miss, too
	@tools/deps.sh --tests $(NGINX)

clean: ## remove all that was built
	rm -rf target t/servroot

help: ## this text
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "Variables: NGINX=vendored|debian, NGINX_BUILD_DIR, NGINX_SOURCE_DIR, NGINX_BINARY, DESTDIR, PREFIX"
