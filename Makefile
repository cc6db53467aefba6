# shardproof. `make` builds, `make demo` shows the main job, `make test` runs every test; both install what is missing
# (Debian and Ubuntu packages; without root they print the one command to run and stop). V=1 shows whole commands.
CC ?= cc
VERSION := 0.1.0
PREFIX ?= /usr/local
BUILD ?= build
BIN ?= shardproof
PACKAGES := gcc make pkg-config libyaml-dev libjansson-dev libcairo2-dev libpango1.0-dev libharfbuzz-dev libpng-dev librandom123-dev libcmocka-dev libexpat1-dev fonts-inter fonts-dejavu-core
# for --mpi: plug-ins are built with each MPI that is installed; without one everything else works
MPI_PACKAGES := openmpi-bin libopenmpi-dev
MPICH_PACKAGES := mpich libmpich-dev
MODULES := yaml-0.1 jansson pangocairo pangoft2 cairo harfbuzz-subset libpng
CFLAGS ?= -O3 -g
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wmissing-prototypes
# no -ffast-math: sums have a fixed order and NaN means something
ALL_CFLAGS = -std=gnu17 $(CFLAGS) -ffp-contract=off -fno-math-errno -fno-trapping-math $(WARN) -Isim -I. \
	-DSHARDPROOF_VERSION='"$(VERSION)"' -pthread -MMD -MP $(MODULE_CFLAGS)
LIBS = $(MODULE_LIBS) -lm -pthread -ldl
# asked for once, when first needed
MODULE_CFLAGS = $(eval MODULE_CFLAGS := $(shell pkg-config --cflags $(MODULES) 2>/dev/null))$(MODULE_CFLAGS)
MODULE_LIBS = $(eval MODULE_LIBS := $(shell pkg-config --libs $(MODULES) 2>/dev/null))$(MODULE_LIBS)
CMOCKA_LIBS = $(eval CMOCKA_LIBS := $(shell pkg-config --libs cmocka 2>/dev/null))$(CMOCKA_LIBS)
# MPI=openmpi, MPI=mpich: these plug-ins, and an error where one cannot be built. Compilers by Debian's names, or OPENMPI_CC=mpicc.
OPENMPI_CC ?= $(shell command -v mpicc.openmpi)
MPICH_CC ?= $(shell command -v mpicc.mpich)
MPI ?= $(if $(OPENMPI_CC),openmpi) $(if $(MPICH_CC),mpich)
PLUGINS := $(MPI:%=$(dir $(BIN))shardproof-%.so)
# CUDA=1: the plug-in of --cuda too. Kernels for these architectures, and for later ones as PTX.
NVCC ?= $(or $(shell command -v nvcc),$(wildcard /usr/local/cuda/bin/nvcc))
CUDA_ARCHS ?= 80 90
GPU_PLUGIN := $(if $(CUDA),$(dir $(BIN))shardproof-cuda.so)
# and that of NCCL, which is found when it is opened; its header alone is needed here
NCCL_H ?= $(firstword $(wildcard /usr/local/cuda/include/nccl.h /usr/include/nccl.h /usr/local/include/nccl.h))
NCCL_PLUGIN := $(if $(CUDA),$(dir $(BIN))shardproof-nccl.so)
# The tests build both where the toolkit is found (NVCC= leaves them out), for one architecture, and
# not beside the program, which nothing changes.
TOOLKIT := $(and $(NVCC),$(wildcard $(dir $(NVCC))../include/cublasLt.h))
GPU_REAL := $(if $(TOOLKIT),$(BUILD)/tests/real/shardproof-cuda.so)
NCCL_REAL := $(if $(TOOLKIT),$(if $(NCCL_H),$(BUILD)/tests/real/shardproof-nccl.so))
# CUDA's plug-in on a runtime of the tests (below)
CUDA_HOST := $(if $(TOOLKIT),$(BUILD)/tests/cuda_host.so)
$(BUILD)/tests/real/%: CUDA_ARCHS = 90
# what processes that no MPI has started meet by
STAR := sim/engine/star.c sim/engine/boot.c sim/engine/place.c
SIM := $(filter-out sim/cli/main.c,$(wildcard sim/*/*.c)) $(wildcard render/*.c render/*/*.c)
OBJ := $(SIM:%.c=$(BUILD)/%.o)
TESTS := $(patsubst tests/test_%.c,$(BUILD)/tests/test_%,$(wildcard tests/test_*.c))
SUPPORT := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/support/*.c))

ifeq ($(V),1)
say =
else
say = @echo '  $(1)  $(2)';
endif

.PHONY: all demo test bench measured soak sabotage corpus docs gallery figures clean install uninstall lint asan tsan valgrind coverage same deps
.DELETE_ON_ERROR:

all: $(BIN) plugins
$(BIN): $(BUILD)/sim/cli/main.o $(BUILD)/libshardproof.a
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/libshardproof.a: $(OBJ)
	@rm -f $@
	$(call say,AR,$@)ar rcs $@ $^
$(BUILD)/%.o: %.c | packages
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) -c -o $@ $<
.PHONY: plugins
plugins: $(PLUGINS) $(GPU_PLUGIN) $(NCCL_PLUGIN)
$(dir $(BIN))shardproof-openmpi.so: MPI_CC = $(OPENMPI_CC)
$(dir $(BIN))shardproof-mpich.so: MPI_CC = $(MPICH_CC)
# MPICH's "no statuses" is the address 1, which the compiler takes for an array of no bytes
$(PLUGINS): sim/engine/mpi/engine_mpi.c sim/engine/engine.h
	@[ -n "$(MPI_CC)" ] || { echo "$@ needs the compiler of its MPI: OPENMPI_CC=, MPICH_CC=" >&2; exit 1; }
	$(call say,CC,$<)$(MPI_CC) -std=gnu17 -O2 -g $(WARN) -Wno-missing-prototypes -Wno-stringop-overflow -Isim -shared -fPIC -pthread -o $@ $<
$(GPU_PLUGIN) $(GPU_REAL): sim/gpu/cuda/gpu_cuda.cu $(wildcard sim/gpu/*.h sim/ops/*.cu.h)
	@[ -n "$(NVCC)" ] || { echo "make CUDA=1 needs nvcc of CUDA's toolkit (12 or 13) with cublasLt.h:" \
	    "in PATH, in /usr/local/cuda, or NVCC=FILE" >&2; exit 1; }
	@mkdir -p $(@D)
	$(call say,NVCC,$<)$(NVCC) -std=c++17 -O2 -Isim -I. -shared -cudart static \
	    -Xcompiler -fPIC,-Wall,-fvisibility=hidden -Xfatbin -compress-all \
	    $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
	    -gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS)) \
	    -o $@ $< -ldl
$(NCCL_PLUGIN) $(NCCL_REAL): sim/engine/nccl/engine_nccl.c sim/engine/nccl_calls.c $(STAR) $(wildcard sim/engine/*.h)
	@[ -n "$(NVCC)" ] && [ -n "$(NCCL_H)" ] || { echo "make CUDA=1 needs nvcc of CUDA's toolkit and nccl.h" \
	    "(Debian: libnccl-dev; in a Python package: nvidia/nccl/include): NVCC=FILE, NCCL_H=FILE" >&2; exit 1; }
	@mkdir -p $(@D)
	$(call say,NVCC,$<)$(NVCC) -O2 -Isim -I$(dir $(NCCL_H)) -shared -cudart static \
	    -Xcompiler -Wall,-Wextra,-fPIC,-fvisibility=hidden,-pthread -o $@ $(filter %.c,$^) -ldl
# What a machine with a GPU needs to run tests/gpu.sh: the program, its plug-ins, all their libraries
# but libc and libm, plans.
.PHONY: bundle
bundle: shardproof plugins
	@[ -n "$(CUDA)" ] || { echo "make CUDA=1 bundle" >&2; exit 1; }
	sh tests/bundle.sh $(BUILD)/bundle
# Tests are compiled in a third of the time, and what they test as it is shipped. A CFLAGS of one's own stays.
$(BUILD)/tests/test_%.o $(BUILD)/tests/support/%.o $(BUILD)/tests/fuzz/%.o: CFLAGS := $(CFLAGS:-O3=-O1)
# kernels, which many tests wait for
$(BUILD)/tests/support/emulate.o: CFLAGS := $(CFLAGS:-O3=-O2)
# Rooms without loops over numbers gain nothing from more than this.
PLAIN_ROOMS := cli import export plan model assign formats trace cost schedule
$(foreach r,$(PLAIN_ROOMS),$(BUILD)/sim/$(r)/%.o) $(BUILD)/render/%.o: CFLAGS := $(CFLAGS:-O3=-O2)
# Says what is missing, where the compiler would say it in a hundred lines. `make demo` installs it.
.PHONY: packages
packages:
	@pkg-config --exists $(MODULES) 2>/dev/null || { \
		sh tests/deps.sh --say $(PACKAGES) || exit 1; \
		pkg-config --exists --print-errors $(MODULES) || { \
		echo "shardproof needs what pkg-config calls: $(MODULES)" >&2; exit 1; }; }
FUZZ_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/fuzz/fuzz_*.c))
$(BUILD)/tests/test_fuzz_corpus: $(FUZZ_OBJ)
$(BUILD)/tests/test_%: $(BUILD)/tests/test_%.o $(SUPPORT) $(BUILD)/libshardproof.a
	$(call say,LD,$@)$(CC) $(LDFLAGS) $(TEST_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(CMOCKA_LIBS) $(TEST_LIBS) $(LIBS)
# an XML parser to read pictures with; the program itself needs none
$(BUILD)/tests/test_gallery: TEST_LIBS = $(shell pkg-config --libs expat 2>/dev/null)

# Installs what is missing; a marker keeps later calls quick.
deps:
	@sh tests/deps.sh $(PACKAGES)

.PHONY: deps-mpi
deps-mpi: deps
	@sh tests/deps.sh $(MPI_PACKAGES) || echo "without $(MPI_PACKAGES): the tests of --mpi are left out"

demo: deps
	@$(MAKE) --no-print-directory -j2 shardproof plugins
	./shardproof run plans/03-llama3-8b-tp2.yaml --set model.shrink=1 -o out

# Without debug information, which `make tests` keeps, a test links in half of the time and is a fourth as large.
test: deps-mpi
	@$(MAKE) --no-print-directory -j2 shardproof tests TEST_LDFLAGS=-Wl,-S
	@$(if $(GPU_REAL),,echo "CUDA's plug-in is not built: no nvcc with cublasLt.h";) \
	    $(if $(NCCL_REAL),:,echo "NCCL's plug-in is not built: no nvcc with cublasLt.h and nccl.h")
	sh tests/run.sh $(BUILD)/tests
.PHONY: tests
# test_rooms reads what each object defines, main.o too
tests: $(TESTS) $(BUILD)/sim/cli/main.o $(BUILD)/tests/trip.so $(BUILD)/tests/engine.so $(BUILD)/tests/falls.so $(BUILD)/tests/gpu.so $(BUILD)/tests/nccl.so \
	plugins $(GPU_REAL) $(NCCL_REAL) $(CUDA_HOST)
# what the tests load into the real binary; never built with a sanitizer
TRIP_CC = $(CC) -std=gnu17 -O1 -g $(WARN) -Wno-missing-prototypes -Isim -shared -fPIC -pthread
TRIP_H := $(wildcard tests/trip/*.h tests/trip/cuda/*.h)
# makes allocations and file operations fail (LD_PRELOAD)
$(BUILD)/tests/trip.so: tests/trip/trip.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(TRIP_CC) -o $@ $< -ldl

# ranks that are killed or stopped in a phase of a run (LD_PRELOAD)
$(BUILD)/tests/falls.so: tests/trip/falls.c $(TRIP_H)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(TRIP_CC) -o $@ $< -ldl

# an engine that fails, for --mpi
$(BUILD)/tests/engine.so: tests/trip/engine.c sim/engine/engine.h
	@mkdir -p $(@D)
	$(call say,CC,$<)$(TRIP_CC) -o $@ $<

# the kernels and what runs them in place of a GPU, for both plug-ins that have none
EMULATE := $(BUILD)/tests/emulate.o
$(EMULATE): tests/support/emulate.c tests/support/emulate.h tests/support/fence.h sim/base/arena.h sim/base/clock.h \
		$(wildcard sim/gpu/*.h sim/ops/*.cu.h)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) -std=gnu17 -O2 -g -ffp-contract=off -fno-math-errno -fno-trapping-math -Isim -I. -Itests -fPIC \
		-fvisibility=hidden -c -o $@ $<

# a plug-in for --cuda whose GPU is the process itself (tests/support/emulate.h), and which can fail
FENCE := tests/support/fence.c sim/base/arena.c sim/base/ends.c sim/base/utf8.c sim/base/clock.c
GPU_TEST := tests/trip/gpu.c $(FENCE)
FAKE_I := -I. -Itests -Itests/trip/cuda
$(BUILD)/tests/gpu.so: $(GPU_TEST) $(EMULATE) tests/support/emulate.h $(TRIP_H) \
		$(wildcard sim/gpu/*.h sim/ops/*.cu.h)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) -std=gnu17 -O2 -g -ffp-contract=off -Isim $(FAKE_I) -Itests/support -shared \
		-fPIC -fvisibility=hidden -Wl,-Bsymbolic -o $@ $(GPU_TEST) $(EMULATE) -lm -ldl -pthread

# CUDA's plug-in itself, on a runtime and a cuBLASLt of the tests: with the real headers, so where they are
CUDA_HOST_I := -I. -Itests -Itests/support -isystem $(dir $(NVCC))../include
$(BUILD)/tests/cuda_host.so: tests/trip/cuda_host.cc tests/trip/cuda_host.c sim/gpu/cuda/gpu_cuda.cu $(EMULATE) \
		tests/support/emulate.h $(FENCE) $(wildcard sim/gpu/*.h sim/ops/*.cu.h)
	@mkdir -p $(@D)
	$(call say,CXX,$<)$(CXX) -std=gnu++17 -O2 -g -ffp-contract=off -Isim $(CUDA_HOST_I) -fPIC -fvisibility=hidden -c -o $@.o $<
	$(call say,CC,$(word 2,$^))$(CC) -std=gnu17 -O2 -g -ffp-contract=off -Wall -Wextra -Isim $(CUDA_HOST_I) -shared -fPIC \
		-fvisibility=hidden -Wl,-Bsymbolic -o $@ tests/trip/cuda_host.c $(EMULATE) $(FENCE) $@.o -lstdc++ -lm -ldl -pthread

# NCCL and CUDA's runtime of the tests, and NCCL's plug-in on them: with the real headers where they are
CUDA_H := $(if $(NCCL_H),$(dir $(firstword $(wildcard /usr/local/cuda/include/cuda_runtime_api.h \
	$(dir $(NCCL_H))cuda_runtime_api.h))))
NCCL_I := $(if $(CUDA_H),-isystem $(dir $(NCCL_H)) -isystem $(CUDA_H),-Itests/trip/cuda)
$(BUILD)/tests/fake_nccl.so: tests/trip/nccl.c tests/support/order.c tests/support/order.h $(TRIP_H) \
		$(FENCE)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(TRIP_CC) $(FAKE_I) -Wl,-Bsymbolic -o $@ $< tests/support/order.c $(FENCE)
$(BUILD)/tests/nccl.so: tests/trip/nccl_engine.c sim/engine/nccl/engine_nccl.c sim/engine/nccl_calls.c \
		tests/trip/nccl_abi.h $(STAR) $(BUILD)/tests/fake_nccl.so $(wildcard sim/engine/*.h)
	$(call say,CC,$<)$(TRIP_CC) -Itests/trip $(NCCL_I) -fvisibility=hidden -o $@ $< sim/engine/nccl_calls.c \
		$(STAR) -L$(BUILD)/tests -l:fake_nccl.so -Wl,-rpath,'$$ORIGIN'

bench: shardproof plugins $(BUILD)/tests/bench $(BUILD)/tests/bench_mpi
	$(BUILD)/tests/bench
	$(BUILD)/tests/bench_mpi
# the table of docs/measured.md, on this machine
measured: shardproof plugins $(BUILD)/tests/measured
	$(BUILD)/tests/measured
$(BUILD)/tests/measured: $(BUILD)/tests/measured.o $(BUILD)/libshardproof.a
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/tests/bench_mpi: $(BUILD)/tests/bench_mpi.o $(BUILD)/libshardproof.a
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/tests/bench: $(BUILD)/tests/bench.o $(BUILD)/tests/bench_scale.o $(BUILD)/tests/bench_walk.o $(BUILD)/libshardproof.a
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

# 100,000 random legal plans, each with a mutation. It can be stopped and goes on where it was.
SOAK ?= 100000
soak: deps-mpi
	@sh tests/deps.sh $(MPICH_PACKAGES) || echo "without $(MPICH_PACKAGES): MPICH is left out"
	@$(MAKE) --no-print-directory shardproof tests $(BUILD)/tests/soak
	nice -n 10 $(BUILD)/tests/soak $(SOAK)
	SHARDPROOF_SOAK=1 $(BUILD)/tests/test_failures
	SHARDPROOF_SOAK=1 $(BUILD)/tests/test_outputs
	SHARDPROOF_SOAK=10000 $(BUILD)/tests/test_mutations
	SHARDPROOF_SOAK=5000 $(BUILD)/tests/test_dispatchers
	SHARDPROOF_SOAK=1 $(BUILD)/tests/test_moe_families
	SHARDPROOF_SOAK=500 $(BUILD)/tests/test_mpi_ends
	SHARDPROOF_SOAK=500 $(BUILD)/tests/test_nccl
	SHARDPROOF_SOAK=1000 $(BUILD)/tests/test_ranks
	SHARDPROOF_SOAK=200 $(BUILD)/tests/test_mpi
	SHARDPROOF_MPI=mpich $(BUILD)/tests/test_mpi
	SHARDPROOF_MPI=mpich SHARDPROOF_SOAK=100 $(BUILD)/tests/test_mpi_ends
	@if command -v clang > /dev/null; then $(MAKE) fuzz FUZZ_SECONDS=600; else echo "without clang: fuzzing is left out"; fi
$(BUILD)/tests/soak: $(BUILD)/tests/soak.o $(SUPPORT) $(BUILD)/libshardproof.a
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(CMOCKA_LIBS) $(LIBS)

# Mistakes planted one by one in a copy of the tree: the tests must notice each (tests/sabotage/list.txt).
sabotage: deps
	nice -n 10 sh tests/sabotage/run.sh build-sabotage
# OLD: another build of the program; PLANS: default all. Nothing that anybody sees may differ.
corpus: shardproof
	sh tests/corpus.sh $(or $(OLD),$(error OLD=program to compare with)) ./shardproof $(PLANS)
# The reference of plans, from the tables of the program.
docs: shardproof
	sh docs/reference.sh ./shardproof docs
gallery: shardproof
	sh tests/gallery.sh
# The README's figures, drawn anew; that of errors is of a plan with a mistake, which is told on the way.
figures: shardproof
	sh docs/figures.sh ./shardproof docs/figures

# Each target for FUZZ_SECONDS, from the kept corpus and the plans; what is found goes to build-fuzz.
FUZZ_SECONDS ?= 30
FUZZ_FLAGS := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
fuzz: shardproof # it makes the seeds of the trace target
	$(MAKE) BUILD=build-fuzz CC=clang CFLAGS='$(FUZZ_FLAGS)' shardproof-fuzz
	sh tests/fuzz/run.sh build-fuzz $(FUZZ_SECONDS)
FUZZERS := plan config import names safetensors schedule trace rule
shardproof-fuzz: $(FUZZERS:%=$(BUILD)/fuzz_%)
$(FUZZERS:%=$(BUILD)/fuzz_%): $(BUILD)/fuzz_%: tests/fuzz/entry.c $(FUZZ_OBJ) $(BUILD)/libshardproof.a
	$(CC) $(ALL_CFLAGS) -DFUZZ_TARGET=fuzz_$* -o $@ $(filter %.c %.o %.a,$^) -fsanitize=fuzzer,address,undefined $(LIBS)
.PHONY: fuzz shardproof-fuzz

# Under these tools the long tests look at a sample and say so, and limits of time are wider. Some test programs only start
# the plain binary of `make`, with operations that fail (LD_PRELOAD) or on a terminal: nothing of these builds would run in them.
PLAIN := LEAVE_OUT='test_failures test_outputs test_short test_update test_overwrite test_progress' WHY='it starts the plain binary; make test runs it'
asan: shardproof # the pages of pictures are made by the binary itself
	$(MAKE) BUILD=build-asan CFLAGS='-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer' LDFLAGS='-fsanitize=address,undefined' tests
	$(PLAIN) LSAN_OPTIONS=suppressions=$(CURDIR)/tests/lsan.supp:print_suppressions=0 \
	SHARDPROOF_PLANS=300 SHARDPROOF_SAMPLE=12 SHARDPROOF_SLOW=20 sh tests/run.sh build-asan/tests
# Pango, GLib and fontconfig are not built for ThreadSanitizer: it sees their memory but not their locks.
tsan: shardproof
	$(MAKE) BUILD=build-tsan CFLAGS='-O1 -g -fsanitize=thread' LDFLAGS='-fsanitize=thread' tests
	$(PLAIN) TSAN_OPTIONS=ignore_noninstrumented_modules=1 SHARDPROOF_PLANS=200 SHARDPROOF_SAMPLE=12 SHARDPROOF_SLOW=50 sh tests/run.sh build-tsan/tests
# Memcheck knows no AVX-512; the kernels give the same bits on AVX2. It does not follow the processes that test_hostile starts.
valgrind: tests shardproof
	LEAVE_OUT='test_failures test_outputs test_short test_update test_overwrite test_progress test_hostile test_scale' WHY='it looks at processes that it starts or at its own memory, which is another under memcheck; make test runs it' \
	RUN_UNDER='valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite --suppressions=tests/valgrind.supp' \
	SHARDPROOF_ISA=avx2 SHARDPROOF_PLANS=20 SHARDPROOF_SAMPLE=1 SHARDPROOF_SLOW=200 sh tests/run.sh $(BUILD)/tests

# Lines and branches that the tests run, per room. Below these shares of sim/ it fails.
COVERAGE_LINES ?= 95
COVERAGE_BRANCHES ?= 85
coverage: shardproof
	$(MAKE) BUILD=build-cov CFLAGS='-O0 -g --coverage' LDFLAGS=--coverage tests
	find build-cov -name '*.gcda' -delete
	$(PLAIN) SHARDPROOF_PLANS=300 SHARDPROOF_SLOW=20 sh tests/run.sh build-cov/tests
	sh tests/coverage.sh build-cov $(COVERAGE_LINES) $(COVERAGE_BRANCHES)

# The same plans on builds of several compilers and levels of optimization, instruction sets and numbers of threads: the same bytes.
same:
	sh tests/same.sh

lint:
	clang-format --dry-run -Werror $$(find sim render tests -name '*.[ch]')
	cppcheck --quiet --enable=warning,portability --inline-suppr -Isim -I. --error-exitcode=1 sim render
	$(MAKE) BUILD=build-clang CC=clang WARN='$(WARN) -Werror' BIN=build-clang/shardproof all tests
	build-clang/tests/test_rooms

# Under DESTDIR, which is nowhere stored: the program finds its plans from where it lies.
BINDIR = $(DESTDIR)$(PREFIX)/bin
SHARE = $(DESTDIR)$(PREFIX)/share
COMPLETIONS = bash-completion/completions/shardproof zsh/site-functions/_shardproof \
    fish/vendor_completions.d/shardproof.fish
# Folders that were not there are written down, so that uninstall takes away these and no others.
FOLDERS = bin lib share/man/man1 share/man/man5 share/doc/shardproof share/shardproof \
    $(dir $(COMPLETIONS:%=share/%))
install: shardproof plugins
	made=$$(for f in $(FOLDERS); do d="$(PREFIX)/$${f%/}"; \
	    while [ ! -d "$(DESTDIR)$$d" ] && [ -n "$${d#/}" ]; do \
	        echo "$$d"; case "$$d" in */*) d=$${d%/*} ;; *) break ;; esac; \
	    done; done); \
	install -d "$(SHARE)/shardproof" && printf '%s\n' "$$made" >> "$(SHARE)/shardproof/folders"
	install -d "$(BINDIR)" "$(SHARE)/man/man1" "$(SHARE)/man/man5"
	install -d "$(SHARE)/shardproof" "$(SHARE)/doc/shardproof"
	for f in $(COMPLETIONS); do install -d "$(SHARE)/$${f%/*}" || exit 1; done
	install -m 755 shardproof "$(BINDIR)/"
	$(if $(PLUGINS)$(GPU_PLUGIN)$(NCCL_PLUGIN),install -d "$(DESTDIR)$(PREFIX)/lib" && \
	    install -m 755 $(PLUGINS) $(GPU_PLUGIN) $(NCCL_PLUGIN) "$(DESTDIR)$(PREFIX)/lib/")
	install -m 644 docs/shardproof.1 "$(SHARE)/man/man1/"
	install -m 644 docs/shardproof-plan.5 "$(SHARE)/man/man5/"
	install -m 644 README.md LICENSE docs/shardproof.schema.json "$(SHARE)/doc/shardproof/"
	for f in plans examples; do \
	    find $$f -type d -exec install -d "$(SHARE)/shardproof/{}" ';' && \
	    find $$f -type f -exec install -m 644 '{}' "$(SHARE)/shardproof/{}" ';' || exit 1; done
	./shardproof completion bash > "$(SHARE)/bash-completion/completions/shardproof"
	./shardproof completion zsh > "$(SHARE)/zsh/site-functions/_shardproof"
	./shardproof completion fish > "$(SHARE)/fish/vendor_completions.d/shardproof.fish"
	for f in shardproof/folders $(COMPLETIONS); do chmod 644 "$(SHARE)/$$f" || exit 1; done
uninstall:
	for f in openmpi mpich cuda nccl; do rm -f "$(DESTDIR)$(PREFIX)/lib/shardproof-$$f.so"; done
	rm -f "$(BINDIR)/shardproof" "$(SHARE)/man/man1/shardproof.1" "$(SHARE)/man/man5/shardproof-plan.5"
	for f in $(COMPLETIONS); do rm -f "$(SHARE)/$$f"; done
	made=$$(sort -ru "$(SHARE)/shardproof/folders" 2>/dev/null); \
	rm -rf "$(SHARE)/shardproof" "$(SHARE)/doc/shardproof"; \
	printf '%s\n' "$$made" | while read -r d; do \
	    [ -z "$$d" ] || rmdir "$(DESTDIR)$$d" 2>/dev/null || true; done

clean:
	rm -rf build build-* shardproof $(foreach kind,openmpi mpich cuda nccl,shardproof-$(kind).so)
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
