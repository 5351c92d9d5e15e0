# syntax=docker/dockerfile:1
# Build: docker build --build-arg VERSION=$(git describe --tags --always) -t idemscope .
# Run:   docker run -v ./idemscope.yaml:/etc/idemscope/idemscope.yaml:ro -p 9877:9877 idemscope
# In a container `listen` must be 0.0.0.0:9877, which needs `web_config` with users.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X idemscope/internal/app.Version=${VERSION}" -o /idemscope ./cmd/idemscope

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /idemscope /idemscope
USER 65532:65532
ENV IDEMSCOPE_CONFIG=/etc/idemscope/idemscope.yaml
EXPOSE 9877
HEALTHCHECK --interval=15s --timeout=4s --start-period=5s CMD ["/idemscope", "health"]
ENTRYPOINT ["/idemscope"]
CMD ["serve"]
