# make demo   try it: private servers, sample data, the console
# make test   set up, lint, and run all tests on private servers
# make bench  all measurements; make bench-exporter: one of them; SMALL=1: reduced sizes
# make dashboards   write the Grafana dashboards anew
# make screenshots  pictures of every page of the demo, in every look; FOLDER=where
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X idemscope/internal/app.Version=$(VERSION)

# One RabbitMQ serves all packages. Two packages at a time: each may start servers of its own.
WITHRABBIT := .tools/bin/withrabbit
TEST := $(WITHRABBIT) go test -count=1 -p 2

# One target per program in bench.
BENCHES := $(patsubst bench/%/main.go,bench-%,$(wildcard bench/*/main.go))

.PHONY: build demo test race lint dashboards screenshots bench $(BENCHES) clean

build:
	@scripts/setup build
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/idemscope ./cmd/idemscope

demo:
	@scripts/setup demo
	@$(MAKE) --no-print-directory build
	./bin/idemscope demo

test:
	@scripts/setup test
	@$(MAKE) --no-print-directory lint
	go build -o $(WITHRABBIT) ./internal/testkit/withrabbit
	$(TEST) ./...
	cd dashboards && go test -count=1 ./...

# The race detector needs a C compiler and several times as long.
race:
	@scripts/setup test
	go build -o $(WITHRABBIT) ./internal/testkit/withrabbit
	$(TEST) -race ./...

lint:
	@scripts/setup lint
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt -w is needed:"; echo "$$unformatted"; exit 1; }
	go vet ./...
	.tools/bin/staticcheck ./...
	cd dashboards && go vet ./... && ../.tools/bin/staticcheck ./...
	go run ./scripts/walls

# A module of its own: what it needs is no dependency of idemscope.
dashboards:
	@scripts/setup build
	cd dashboards && go run .

# Every page of the demo in two languages, three widths, light and dark. Those of the README: make screenshots README=1
screenshots:
	@scripts/setup test
	go run ./scripts/screenshots $(if $(README),-readme docs/images,$(or $(FOLDER),bin/screenshots))

# All measurements, also when one misses its goal. SMALL=1: reduced sizes, a few minutes each.
bench:
	@status=0; for b in $(BENCHES); do $(MAKE) --no-print-directory $$b || status=1; done; exit $$status

# What following a ledger costs the database, the consumers beside it, and the exporter itself.
bench-exporter:
	@scripts/setup demo
	go run ./bench/exporter $(if $(SMALL),-small)

# What a sweep of the keys of a Redis costs its other clients. SMALL=1: reduced sizes.
bench-keys:
	@scripts/setup demo
	go run ./bench/keys $(if $(SMALL),-small)

# How long look-ups take at a steady pace in a large ledger. SMALL=1: reduced sizes.
bench-lookup:
	@scripts/setup demo
	go run ./bench/lookup $(if $(SMALL),-small)

# How fast a cleanup is, and what consumers feel of it, against pt-archiver. SMALL=1: reduced sizes.
bench-janitor:
	@scripts/setup bench
	go run ./bench/janitor $(if $(SMALL),-small)

clean:
	rm -rf bin .tools
