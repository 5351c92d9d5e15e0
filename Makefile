# make demo   try it: private servers, sample data, the console
# make test   set up, lint, and run all tests on private servers
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X idemscope/internal/app.Version=$(VERSION)

# One RabbitMQ serves all packages. Two packages at a time: each may start servers of its own.
WITHRABBIT := .tools/bin/withrabbit
TEST := $(WITHRABBIT) go test -count=1 -p 2

.PHONY: build demo test race lint clean

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
	go run ./scripts/walls

clean:
	rm -rf bin .tools
